"""/curator: the upkeep of the skills that the agent made."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations import learning as operations
from hermes_agent.app.operations.skills import pin_skill
from hermes_agent.core.errors import HermesError

HELP = (
    "`/curator` says where everything stands; `/curator run`, `look`, `pause`, `resume`, `pin NAME`, `unpin NAME`, "
    "`restore NAME`, `rollback [PASS]`, `report [PASS]`."
)


async def curator(desk: Desk, rest: str) -> Done:
    """What the rest of the line says, for the owner alone."""
    word, _, name = rest.partition(" ")
    return Done(text=await _done(desk, word or "status", name.strip()))


async def _done(desk: Desk, word: str, name: str) -> str:
    curating = operations.curator(desk.access)
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
            return await _said(desk, word, name)


async def _said(desk: Desk, word: str, name: str) -> str:
    curating = operations.curator(desk.access)
    match word:
        case "pause" | "resume":
            await curating.pause(word == "pause")
            return f"The curator {'is paused' if word == 'pause' else 'goes on'}."
        case "pin" | "unpin" if name:
            return await pin_skill(desk.access, name, off=word == "unpin")
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
