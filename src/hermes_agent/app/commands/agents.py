"""Slash commands about the agents of a conversation: /agents and /background."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.access import say_verb
from hermes_agent.core.errors import HermesError
from hermes_agent.core.section import short_hash
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


async def background(desk: Desk, rest: str) -> Done:
    """Start an agent that works on this in the background."""
    if not rest:
        raise HermesError("Say what an agent shall do: `/background WORDS`.")
    said = desk.inbound
    identity = f"background-{short_hash(f'{said.source} {said.source_id}')}"
    return Done(text=await late(OPERATIONS).start_agent(desk.access, rest, identity))


BACKGROUND = Command(
    name="background",
    summary="Have an agent of its own do this; its report comes as a message.",
    arguments="WORDS",
    act=background,
    while_running=True,
)
