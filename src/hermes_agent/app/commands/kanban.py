"""Slash command /kanban: the board of cards."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.access import say_verb
from hermes_agent.host.late import late

BOARD = "hermes_agent.app.operations.kanban:KANBAN"


async def kanban(desk: Desk, rest: str) -> Done:
    """Run a verb on the board."""
    return Done(text=await say_verb(late(BOARD), desk.access, rest.split()))


KANBAN = Command(
    name="kanban",
    summary="List, create and steer cards, which agents work on by themselves.",
    arguments="[list|show|create|...] [CARD] [WORDS]",
    act=kanban,
    while_running=True,
)
