"""/learn: what was learned, from what, and taking it back."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.learning import learned, review_now
from hermes_agent.core.errors import HermesError

HELP = (
    "`/learn` lists what was learned and what waits; `/learn show ID`, `diff ID`, `undo [ID]`, `why TURN`, "
    "`approve ID`, `reject ID`, `stats`, `review`."
)


async def learn(desk: Desk, rest: str) -> Done:
    """What the rest of the line says, for the owner alone."""
    word, _, name = rest.partition(" ")
    return Done(text=await _done(desk, word or "log", name.strip()))


async def _done(desk: Desk, word: str, name: str) -> str:
    found = learned(desk.access)
    by_name = {
        "show": found.show,
        "diff": found.diff,
        "approve": found.approve,
        "reject": found.reject,
    }
    if word in by_name and name:
        return await by_name[word](name)
    match word:
        case "log":
            return "\n".join(await found.log())
        case "undo":
            return await found.undo(name, desk.inbound.principal.key)
        case "why" if name.isdecimal():
            return "\n".join(await found.why(desk.record.id, int(name)))
        case "stats":
            return "\n".join(await found.stats())
        case "review":
            return "\n".join(await review_now(desk.access))
        case _:
            raise HermesError(HELP)


LEARN = Command(
    name="learn",
    summary="Show what was learned, from what, and take it back.",
    arguments="[log|show|diff|undo|why|approve|reject|stats|review] [ID]",
    act=learn,
    while_running=True,
)
