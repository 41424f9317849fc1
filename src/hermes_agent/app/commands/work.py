"""Slash commands /cron and /kanban: scheduled jobs, and the board of cards."""

from __future__ import annotations

from functools import partial

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.access import say_verb, typed
from hermes_agent.host.late import late


async def _say(noun: str, desk: Desk, rest: str) -> Done:
    """Run the verb that the rest of the line names; what has several words may stand in quotes."""
    return Done(text=await say_verb(late(noun), desk.access, typed(rest)))


CRON = Command(
    name="cron",
    summary="List, make, change and run scheduled jobs, and show what came of each time.",
    arguments='[list|add "WHEN" "WHAT"|show|pause|resume|run|remove|runs|status] [JOB]',
    act=partial(_say, "hermes_agent.app.operations.cron:CRON"),
    while_running=True,
)
KANBAN = Command(
    name="kanban",
    summary="List, create and steer cards, which agents work on by themselves.",
    arguments="[list|show|add|...] [CARD] [WORDS]",
    act=partial(_say, "hermes_agent.app.operations.kanban:KANBAN"),
    while_running=True,
)
