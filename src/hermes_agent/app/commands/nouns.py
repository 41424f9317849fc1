"""Slash commands generated from operation nouns and verbs: /learn, /curator and /memory."""

from __future__ import annotations

from functools import partial

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.learning import CURATED, LEARNED
from hermes_agent.app.operations.memory import FACTS, NOTES
from hermes_agent.app.operations.verbs import Noun, say_verb


async def _say(noun: Noun, desk: Desk, rest: str) -> Done:
    """Run the verb that the rest of the line names."""
    return Done(text=await say_verb(noun, desk.access, rest.split()))


LEARN = Command(
    name="learn",
    summary="List lessons and proposals with their evidence, and approve or undo them.",
    arguments=f"{LEARNED.arguments} [ID]",
    act=partial(_say, LEARNED),
    while_running=True,
)


CURATOR = Command(
    name="curator",
    summary="Archive, merge and repair the skills that the agent made.",
    arguments=f"{CURATED.arguments} [NAME]",
    act=partial(_say, CURATED),
    while_running=True,
)


async def memory(desk: Desk, rest: str) -> Done:
    """Run a verb on the sender's notes, or on facts (`/memory facts ...`)."""
    word, _, more = rest.partition(" ")
    return await (_say(FACTS, desk, more) if word == "facts" else _say(NOTES, desk, rest))


MEMORY = Command(
    name="memory",
    summary="Show the notes about you and their changes, or undo a change.",
    arguments="[log|undo [ID]|facts]",
    act=memory,
    while_running=True,
)
