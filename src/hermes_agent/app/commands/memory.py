"""/memory: what is noted about the one who asks, its changes, and taking them back."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.core.errors import HermesError
from hermes_agent.core.inbound import Principal, Standing
from hermes_agent.memory.entries import size_of
from hermes_agent.memory.log import log, undo
from hermes_agent.memory.notes import By
from hermes_agent.memory.whose import Person, Target, is_shared
from hermes_agent.store.versions import Author

LINES = 10


async def memory(desk: Desk, rest: str) -> Done:
    """The notes of the one who asks; `log` lists the changes, `undo [ID]` takes one back."""
    principal = desk.inbound.principal
    if is_shared(desk.record.conversation):
        raise HermesError("Others read along here: ask for your notes where only you and I are.")
    person = Person(key=principal.key, owner=desk.runtime.is_owner(principal.key))
    word, _, more = rest.partition(" ")
    match word:
        case "":
            return Done(text=await _shown(desk, person))
        case "log":
            return Done(text=await _log(desk, person))
        case "undo":
            return Done(text=await _undo(desk, person, principal, more.strip()))
        case _:
            raise HermesError(
                "`/memory` shows the notes, `/memory log` the changes, `/memory undo [ID]` takes one back."
            )


async def _shown(desk: Desk, person: Person) -> str:
    notes, parts = desk.runtime.notes, []
    for target in Target:
        entries = await notes.read(person, target)
        parts.append(f"{target.file}: {size_of(entries):,} of {notes.limit(target):,} characters")
        parts += [f"  {number}. {entry}" for number, entry in enumerate(entries, 1)]
    return "\n".join(parts)


async def _log(desk: Desk, person: Person) -> str:
    lines = []
    for each in await log(desk.runtime.notes, [person.item(target) for target in Target], LINES):
        lines += [f"{each.id}  {each.item}  {each.action} by {each.author}", *(f"    {line}" for line in each.diff)]
    return "\n".join(lines) or "Nothing was noted yet."


async def _undo(desk: Desk, person: Person, principal: Principal, number: str) -> str:
    if number and not number.isdecimal():
        raise HermesError(f"`{number}` is no number of a version: `/memory log` lists them.")
    author = Author.OWNER if person.owner or principal.standing is Standing.OWNER else Author.MEMBER
    by = By(author=author, principal=principal.key, session=desk.record.id)
    items = [person.item(target) for target in Target]
    version, _ = await undo(desk.runtime.notes, int(number) if number else None, by, items)
    return f"Version {version.id} is taken back. Conversations that begin from now on know it."


MEMORY = Command(
    name="memory",
    summary="Show what is noted about you, the changes, or take one back.",
    arguments="[log|undo [ID]]",
    act=memory,
    while_running=True,
)
