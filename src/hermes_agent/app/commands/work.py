"""Slash commands about work: /agents, /cron, /goal, /subgoal and /kanban. What they do loads when one is used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.verbs import say_verb
from hermes_agent.host.late import late

BOARD = "hermes_agent.app.operations.kanban:KANBAN"


def when_used(where: str) -> Callable[[Desk, str], Awaitable[Done]]:
    """The function of that name, which is loaded when the command is used."""

    async def act(desk: Desk, rest: str) -> Done:
        done: Done = await late(where)(desk, rest)
        return done

    return act


async def kanban(desk: Desk, rest: str) -> Done:
    """Run a verb on the board."""
    return Done(text=await say_verb(late(BOARD), desk.access, rest.split()))


AGENTS = Command(
    name="agents",
    summary="List, read and stop this conversation's agents, or say something to one.",
    arguments="[list|show|log|say|stop] [AGENT|all] [WORDS]",
    act=when_used("hermes_agent.app.commands.agents:agents"),
    while_running=True,
)
CRON = Command(
    name="cron",
    summary="List, make, change and run scheduled jobs, and show what came of each time.",
    arguments='[list|create "WHEN" "WHAT"|show|pause|resume|run|remove|runs|status] [JOB]',
    act=when_used("hermes_agent.app.commands.cron:cron"),
    while_running=True,
)
GOAL = Command(
    name="goal",
    summary="Set a goal that is pursued until its criteria hold, or act on one.",
    arguments="[TEXT|list|show|pause|resume|done|clear|check|draft|wait|until|unwait]",
    act=when_used("hermes_agent.app.commands.goals:goal"),
    while_running=True,
)
SUBGOAL = Command(
    name="subgoal",
    summary="Add a criterion to the goal of this chat.",
    arguments="command CMD|file PATH|board CARD|WORDS",
    act=when_used("hermes_agent.app.commands.goals:subgoal"),
    while_running=True,
)
KANBAN = Command(
    name="kanban",
    summary="List, create and steer cards, which agents work on by themselves.",
    arguments="[list|show|create|...] [CARD] [WORDS]",
    act=kanban,
    while_running=True,
)
