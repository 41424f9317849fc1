"""Commands that answer what a run asks, and the one that ends the asking."""

from __future__ import annotations

from dataclasses import replace

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Answered, Asked, RunEnded
from hermes_agent.core.inbound import Standing

WORDS = ("once", "session", "always")


async def approve(desk: Desk, rest: str) -> Done:
    """Say yes to what the run asks to do."""
    word = rest.lower() or "once"
    if word not in WORDS:
        raise HermesError(f"Say for how long: {', '.join(WORDS)}.")
    return await _answer(desk, word)


async def deny(desk: Desk, rest: str) -> Done:
    """Say no, and why."""
    return await _answer(desk, rest or "deny")


async def yolo(desk: Desk, rest: str) -> Done:
    """No questions in this run: of the person who says it, and with hard block and deny list as ever."""
    if desk.inbound.principal.standing is Standing.GUEST:
        raise HermesError("A guest cannot switch questions off.")
    unasked = desk.runtime.unasked
    if rest.lower() == "off":
        unasked.take_back(desk.record.id)
        return Done(text="Questions are asked again.")
    unasked.say(desk.record.id, desk.inbound.principal.key, running=desk.busy)
    which = "this run" if desk.busy else "your next run"
    return Done(text=f"No questions in {which}. The hard block and the deny list hold. `/yolo off` takes it back.")


async def _answer(desk: Desk, word: str) -> Done:
    question = ""
    for entry in await desk.hermes.store.history.entries(desk.record.id):
        match entry.event:
            case Asked(question=id_, purpose="approval"):
                question = id_
            case Answered(question=id_) if id_ == question:
                question = ""
            case RunEnded():
                question = ""
            case _:
                pass
    if not question:
        raise HermesError("Nothing waits for an approval here.")
    return Done(submit=replace(desk.message(word), answers=question))


APPROVE = Command(
    name="approve",
    summary="Say yes to what is asked.",
    arguments="[once|session|always]",
    act=approve,
    while_running=True,
)
DENY = Command(name="deny", summary="Say no to what is asked.", arguments="[why]", act=deny, while_running=True)
YOLO = Command(
    name="yolo", summary="No questions in this run, or the next one.", arguments="[off]", act=yolo, while_running=True
)
