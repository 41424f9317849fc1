"""/memory: what is noted about the one who asks, its changes, and taking them back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.core.errors import HermesError
from hermes_agent.core.inbound import Principal, Standing
from hermes_agent.host.late import late
from hermes_agent.memory.entries import size_of
from hermes_agent.memory.log import log, undo
from hermes_agent.memory.notes import By
from hermes_agent.memory.whose import Person, Target, is_shared, space_in
from hermes_agent.store.versions import Author

if TYPE_CHECKING:
    from hermes_agent.store.facts.facts import Source

SOURCE = "hermes_agent.store.facts.facts:Source"
LINES = 10


async def memory(desk: Desk, rest: str) -> Done:
    """The notes of the one who asks; `log` lists the changes, `undo [ID]` takes one back; `facts` does so with what is
    known beside the notes."""
    principal = desk.inbound.principal
    if is_shared(desk.record.conversation):
        raise HermesError("Others read along here: ask for your notes where only you and I are.")
    person = Person(key=principal.key, owner=desk.runtime.standings.is_owner(principal.key))
    word, _, more = rest.partition(" ")
    match word:
        case "":
            return Done(text=await _shown(desk, person))
        case "log":
            return Done(text=await _log(desk, person))
        case "undo":
            return Done(text=await _undo(desk, person, principal, more.strip()))
        case "facts":
            return Done(text=await _facts(desk, person, principal, more.split()))
        case _:
            raise HermesError(
                "`/memory` shows the notes, `/memory log` the changes, `/memory undo [ID]` takes one back; "
                "`/memory facts` shows what is known beside them."
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
    by = By(author=_author(person, principal), principal=principal.key, session=desk.record.id)
    items = [person.item(target) for target in Target]
    version, _ = await undo(desk.runtime.notes, int(number) if number else None, by, items)
    return f"Version {version.id} is taken back. Conversations that begin from now on know it."


async def _facts(desk: Desk, person: Person, principal: Principal, words: list[str]) -> str:
    facts, now = desk.runtime.store.known_facts, desk.runtime.clock.now()
    space = space_in(desk.runtime.loaded.value.memory.provider_space, person)
    source: Source = late(SOURCE)(author=_author(person, principal), principal=principal.key, session=desk.record.id)
    match words:
        case []:
            found = [f"{each.id}  {each.text} (trust {each.trust:.1f})" for each in await facts.in_force(space)]
        case ["log"]:
            found = [
                f"{each.id}  fact {each.fact}  {each.action.value} by {each.source.author.value}: {each.text}"
                for each in await facts.log(space, limit=LINES)
            ]
        case ["retract", number] if number.isdecimal():
            found = [f"Fact {number} is retracted: {(await facts.retract(space, int(number), source, now)).text}"]
        case ["undo", number] if number.isdecimal():
            made = await facts.undo(space, int(number), source, now)
            found = [f"Change {number} of fact {made.fact} ({made.action.value}) is taken back."]
        case _:
            raise HermesError("`/memory facts` shows them, `... log` the changes, `... retract ID`, `... undo ID`.")
    return "\n".join(found) or "No facts are known."


def _author(person: Person, principal: Principal) -> Author:
    return Author.OWNER if person.owner or principal.standing is Standing.OWNER else Author.MEMBER


MEMORY = Command(
    name="memory",
    summary="Show what is noted about you, the changes, or take one back.",
    arguments="[log|undo [ID]|facts]",
    act=memory,
    while_running=True,
)
