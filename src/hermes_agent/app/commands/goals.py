"""Slash commands /goal and /subgoal."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.host.late import late

WORDS = "hermes_agent.app.commands.goal_words"


async def goal(desk: Desk, rest: str) -> Done:
    """Set a goal, or act on one."""
    return Done(text=await late(WORDS).goal(desk, rest))


async def subgoal(desk: Desk, rest: str) -> Done:
    """Add a criterion to the session's goal."""
    return Done(text=await late(WORDS).subgoal(desk, rest))


GOAL = Command(
    name="goal",
    summary="Set a goal that is pursued until its criteria hold, or act on one.",
    arguments="[TEXT|list|show|pause|resume|done|clear|check|draft|wait|until|unwait]",
    act=goal,
    while_running=True,
)
SUBGOAL = Command(
    name="subgoal",
    summary="Add a criterion to the goal of this chat.",
    arguments="command CMD|file PATH|board CARD|WORDS",
    act=subgoal,
    while_running=True,
)
