"""/memory: what is noted about the one who asks, its changes, and taking them back; `facts` does so with what is known
beside the notes."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.facts import FACTS
from hermes_agent.app.operations.notes import NOTES
from hermes_agent.app.operations.verbs import say_verb


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
