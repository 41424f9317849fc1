"""/memory: what is noted about the one who asks, its changes, and taking them back."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations import facts as known
from hermes_agent.app.operations.notes import log_lines, note_log, person_of, read_notes, undo_note, undo_report
from hermes_agent.core.errors import HermesError

LINES = 10


async def memory(desk: Desk, rest: str) -> Done:
    """The notes of the one who asks; `log` lists the changes, `undo [ID]` takes one back; `facts` does so with what is
    known beside the notes."""
    person_of(desk.access)
    match rest.split():
        case []:
            return Done(text="\n".join(map(str, await read_notes(desk.access))))
        case ["log"]:
            return Done(text=log_lines(await note_log(desk.access, LINES)) or "Nothing was noted yet.")
        case ["undo", *numbers] if len(numbers) < 2:
            return Done(text=await _undo(desk, *numbers))
        case ["facts", *words]:
            return Done(text=await _facts(desk, words))
        case _:
            raise HermesError(
                "`/memory` shows the notes, `/memory log` the changes, `/memory undo [ID]` takes one back; "
                "`/memory facts` shows what is known beside them."
            )


async def _undo(desk: Desk, number: str = "") -> str:
    if number and not number.isdecimal():
        raise HermesError(f"`{number}` is no number of a version: `/memory log` lists them.")
    return undo_report(*await undo_note(desk.access, int(number) if number else None, desk.record.id))


async def _facts(desk: Desk, words: list[str]) -> str:
    match words:
        case []:
            return known.fact_lines(await known.list_facts(desk.access)) or known.NONE_KNOWN
        case ["log"]:
            return known.change_lines(await known.fact_log(desk.access, LINES)) or known.NONE_KNOWN
        case ["retract", number] if number.isdecimal():
            return await known.retract_fact(desk.access, int(number), desk.record.id)
        case ["undo", number] if number.isdecimal():
            return await known.undo_fact(desk.access, int(number), desk.record.id)
        case _:
            raise HermesError("`/memory facts` shows them, `... log` the changes, `... retract ID`, `... undo ID`.")


MEMORY = Command(
    name="memory",
    summary="Show what is noted about you, the changes, or take one back.",
    arguments="[log|undo [ID]|facts]",
    act=memory,
    while_running=True,
)
