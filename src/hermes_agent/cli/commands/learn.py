"""`hermes learn`: what was learned, from what, what waits, and taking it back."""

from __future__ import annotations

from hermes_agent.app.operations.learning import LEARNED
from hermes_agent.cli.verbs import group_of

learn = group_of(LEARNED)
