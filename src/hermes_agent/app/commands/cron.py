"""Slash command /cron: scheduled jobs."""

from __future__ import annotations

import shlex

from hermes_agent.app.commands.command import Desk, Done
from hermes_agent.app.operations.cron import CRON
from hermes_agent.app.operations.verbs import say_verb
from hermes_agent.core.errors import HermesError


async def cron(desk: Desk, rest: str) -> Done:
    """Run a verb on scheduled jobs; a schedule or prompt of several words stands in quotes."""
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise HermesError(f"The quotes do not match. {CRON.usage}") from error
    return Done(text=await say_verb(CRON, desk.access, words))
