"""Slash command /agents: lists, reads, stops and speaks to the agents of a conversation."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.access import say_verb
from hermes_agent.core.errors import HermesError
from hermes_agent.host.late import late

OPERATIONS = "hermes_agent.app.operations.agents"


async def agents(desk: Desk, rest: str) -> Done:
    """Run a verb on the conversation's agents; what `say` says goes to the end of the line."""
    word, _, more = rest.partition(" ")
    operations = late(OPERATIONS)
    if word != "say":
        return Done(text=await say_verb(operations.AGENTS, desk.access, rest.split()))
    agent, _, words = more.strip().partition(" ")
    if not words.strip():
        raise HermesError("Say what: `/agents say AGENT WORDS`.")
    return Done(text=await operations.say_agent(desk.access, agent, words.strip()))


AGENTS = Command(
    name="agents",
    summary="List, read and stop this conversation's agents, or say something to one.",
    arguments="[list|show|log|say|stop] [AGENT|all] [WORDS]",
    act=agents,
    while_running=True,
)
