"""Slash commands whose words are the verbs of a noun: /learn, /curator, /memory."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.learning import CURATED, LEARNED
from hermes_agent.app.operations.memory import FACTS, NOTES
from hermes_agent.app.operations.verbs import say_verb


async def learn(desk: Desk, rest: str) -> Done:
    """What the rest of the line says, for the owner alone."""
    return Done(text=await say_verb(LEARNED, desk.access, rest.split()))


LEARN = Command(
    name="learn",
    summary="Show what was learned, from what, and take it back.",
    arguments=f"{LEARNED.arguments} [ID]",
    act=learn,
    while_running=True,
)


async def curator(desk: Desk, rest: str) -> Done:
    """What the rest of the line says, for the owner alone."""
    return Done(text=await say_verb(CURATED, desk.access, rest.split()))


CURATOR = Command(
    name="curator",
    summary="Look after the skills that the agent made.",
    arguments=f"{CURATED.arguments} [NAME]",
    act=curator,
    while_running=True,
)


async def memory(desk: Desk, rest: str) -> Done:
    """The notes of the one who asks, or what is known beside them."""
    words = rest.split()
    if words[:1] == ["facts"]:
        return Done(text=await say_verb(FACTS, desk.access, words[1:]))
    return Done(text=await say_verb(NOTES, desk.access, words))


MEMORY = Command(
    name="memory",
    summary="Show what is noted about you, the changes, or take one back.",
    arguments="[log|undo [ID]|facts]",
    act=memory,
    while_running=True,
)
