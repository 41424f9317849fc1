"""/learn: what was learned, from what, and taking it back."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.learning import LEARNED
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
