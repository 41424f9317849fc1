"""Slash command /cron: scheduled jobs."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.verbs import say_verb, typed
from hermes_agent.host.late import late

JOBS = "hermes_agent.app.operations.cron:CRON"


async def cron(desk: Desk, rest: str) -> Done:
    """Run a verb on scheduled jobs; a schedule or prompt of several words stands in quotes."""
    return Done(text=await say_verb(late(JOBS), desk.access, typed(rest)))


CRON = Command(
    name="cron",
    summary="List, make, change and run scheduled jobs, and show what came of each time.",
    arguments='[list|create "WHEN" "WHAT"|show|pause|resume|run|remove|runs|status] [JOB]',
    act=cron,
    while_running=True,
)
