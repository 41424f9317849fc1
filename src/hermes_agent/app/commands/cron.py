"""Slash command /cron: scheduled jobs."""

from __future__ import annotations

import shlex

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.access import say_verb
from hermes_agent.core.errors import HermesError
from hermes_agent.host.late import late

JOBS = "hermes_agent.app.operations.cron:CRON"


async def cron(desk: Desk, rest: str) -> Done:
    """Run a verb on scheduled jobs; a schedule or prompt of several words stands in quotes."""
    jobs = late(JOBS)
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise HermesError(f"The quotes do not match. {jobs.usage}") from error
    return Done(text=await say_verb(jobs, desk.access, words))


CRON = Command(
    name="cron",
    summary="List, make, change and run scheduled jobs, and show what came of each time.",
    arguments='[list|create "WHEN" "WHAT"|show|pause|resume|run|remove|runs|status] [JOB]',
    act=cron,
    while_running=True,
)
