"""`hermes curator`: the upkeep of the skills that the agent made, seen, started, stopped and taken back."""

from __future__ import annotations

from hermes_agent.app.operations.learning import CURATED
from hermes_agent.cli.verbs import group_of

curator = group_of(CURATED)
