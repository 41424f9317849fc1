"""/curator: the upkeep of the skills that the agent made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.core.errors import HermesError
from hermes_agent.core.inbound import Standing

if TYPE_CHECKING:
    from hermes_agent.app.learning.curating import Curating

HELP = (
    "`/curator` says where everything stands; `/curator run`, `look`, `pause`, `resume`, `pin NAME`, `unpin NAME`, "
    "`restore NAME`, `rollback [PASS]`, `report [PASS]`."
)


async def curator(desk: Desk, rest: str) -> Done:
    """What the rest of the line says, for the owner alone."""
    if desk.inbound.principal.standing is not Standing.OWNER:
        raise HermesError("The skills of this home are the owner's to look after.")
    word, _, name = rest.partition(" ")
    return Done(text=await _done(desk, word or "status", name.strip()))


async def _done(desk: Desk, word: str, name: str) -> str:
    curating = desk.runtime.learner.curating
    match word:
        case "status":
            return "\n".join((await curating.status()).lines)
        case "run" | "look":
            return (await curating.run(look=word == "look")).summary
        case "report":
            return (await curating.one(name)).text
        case "rollback":
            return "\n".join(await curating.rollback(name))
        case _:
            return await _said(curating, word, name)


async def _said(curating: Curating, word: str, name: str) -> str:
    match word:
        case "pause" | "resume":
            await curating.pause(word == "pause")
            return f"The curator {'is paused' if word == 'pause' else 'goes on'}."
        case "pin" | "unpin" if name:
            await curating.pin(name, off=word == "unpin")
            return f"`{name}` is {'no longer ' if word == 'unpin' else ''}pinned."
        case "restore" if name:
            await curating.restore(name)
            return f"`{name}` is back."
        case _:
            raise HermesError(HELP)


CURATOR = Command(
    name="curator",
    summary="Look after the skills that the agent made.",
    arguments="[status|run|look|pause|resume|pin|unpin|restore|rollback|report] [NAME]",
    act=curator,
    while_running=True,
)
