"""/learn: what was learned, from what, and taking it back."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.core.errors import HermesError
from hermes_agent.core.inbound import Standing
from hermes_agent.core.plural import plural

HELP = (
    "`/learn` lists what was learned and what waits; `/learn show ID`, `diff ID`, `undo [ID]`, `why TURN`, "
    "`approve ID`, `reject ID`, `stats`, `review`."
)


async def learn(desk: Desk, rest: str) -> Done:
    """What the rest of the line says, for the owner alone."""
    if desk.inbound.principal.standing is not Standing.OWNER:
        raise HermesError("What was learned is the owner's to see and to change.")
    word, _, name = rest.partition(" ")
    return Done(text=await _done(desk, word or "log", name.strip()))


async def _done(desk: Desk, word: str, name: str) -> str:
    learned = desk.runtime.learner.learned
    by_name = {
        "show": learned.show,
        "diff": learned.diff,
        "approve": learned.approve,
        "reject": learned.reject,
    }
    if word in by_name and name:
        return await by_name[word](name)
    match word:
        case "log":
            return "\n".join(await learned.log())
        case "undo":
            return await learned.undo(name, desk.inbound.principal.key)
        case "why" if name.isdecimal():
            return "\n".join(await learned.why(desk.record.id, int(name)))
        case "stats":
            return "\n".join(await learned.stats())
        case "review":
            return f"{plural(await desk.runtime.learner.run(), 'job')} done."
        case _:
            raise HermesError(HELP)


LEARN = Command(
    name="learn",
    summary="Show what was learned, from what, and take it back.",
    arguments="[log|show|diff|undo|why|approve|reject|stats|review] [ID]",
    act=learn,
    while_running=True,
)
