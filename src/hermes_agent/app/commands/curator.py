"""/curator: the upkeep of the skills that the agent made."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.learning import CURATED
from hermes_agent.app.operations.verbs import say_verb


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
