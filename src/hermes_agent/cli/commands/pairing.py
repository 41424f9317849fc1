"""`hermes pairing`: letting people in who were given a code."""

from __future__ import annotations

from hermes_agent.app.operations.chats import PAIRING
from hermes_agent.cli.verbs import group_of

pairing = group_of(PAIRING)
