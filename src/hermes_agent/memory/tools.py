"""The tools `memory` (the notes) and `session_search` (past conversations); lists and undoes changes of the notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import unified_diff
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from hermes_agent.core.chat import Standings
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import BadArguments, HermesError, StoreError, ToolError
from hermes_agent.core.messages import Origin, Quoted, Text
from hermes_agent.core.tool import Answer, CallContext, tool
from hermes_agent.host.late import Needs, late
from hermes_agent.memory.entries import Action, Operation, decoded, size_of
from hermes_agent.memory.notes import Notes, Saved
from hermes_agent.memory.settings import Person, Target, is_shared, person_of
from hermes_agent.store.database import Store
from hermes_agent.store.versions import NO_BACKING, Author, Backing, By, Kind, Version

if TYPE_CHECKING:
    from hermes_agent.memory.conversations import Conversations


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTools:
    """The tool `memory`, which reads and changes the notes. `is_owner` says whose notes are the home's own;
    `author` is the caller; `backing` is the evidence of a review's write."""

    open_notes: Callable[[], Notes]
    is_owner: Callable[[str], bool]
    author: Author = Author.FOREGROUND
    backing: Backing = NO_BACKING

    @tool(effect=Effect.KEYED, needs=(Capability.MEMORY,), origin=Origin.MEMORY)
    async def memory(
        self,
        context: CallContext,
        target: Literal["memory", "user"],
        action: Action | None = None,
        content: str = "",
        old_text: str = "",
        operations: list[Operation] | None = None,
    ) -> str | Answer:
        """Keep what later conversations need: user = who the person is, likes, wants; memory = facts on projects,
        machines, ways of working. Short, lasting, declarative; no task state, no secrets. Nothing given: show.

        Args:
            target: which notes
            old_text: a piece of the one entry to replace or remove
            operations: several at once, all or none
        """
        chosen, notes = Target(target), self.open_notes()
        person, by = await self._whose(notes.store, context)
        wanted = list(operations or ())
        if action is not None:
            wanted.insert(0, Operation(action=action, content=content, old_text=old_text))
        if not wanted:
            return Answer(parts=await _shown(notes, person, chosen))
        try:
            saved = await notes.change(person, chosen, wanted, by)
        except ToolError as error:
            shown = await _shown(notes, person, chosen)
            worst = max((part.origin for part in shown), key=lambda each: each.trust)
            error.quoted = Quoted(text="".join(part.text for part in shown), origin=worst)
            raise
        return _said(notes, chosen, saved)

    async def _whose(self, store: Store, context: CallContext) -> tuple[Person, By]:
        record = await store.sessions.get(context.session)
        conversation = record.conversation if record else ""
        key = context.speaker
        if not key and record is not None and not is_shared(conversation):
            key = record.principal
        if not key:
            raise ToolError(
                "Several people spoke in this run, so it is not certain whose notes are meant: nothing was written.",
                hint="Wait for the next message of the one whose notes they are.",
            )
        last = await store.history.last_number(context.session)
        by = By(
            author=self.author,
            principal=key,
            session=context.session,
            first=self.backing.first or await store.history.said_at(context.session),
            last=self.backing.last or last,
            key=context.key,
            backing=self.backing,
        )
        return person_of(key, self.is_owner, conversation), by


def _said(notes: Notes, target: Target, saved: Saved) -> str:
    edited = " The file had been changed outside; that was kept." if saved.edited else ""
    done = f"Noted (version {saved.version})." if saved.version else "Nothing had to change."
    return f"{done} {_usage(notes, target, saved.entries)}{edited} Later conversations begin with it."


def _usage(notes: Notes, target: Target, entries: tuple[str, ...]) -> str:
    size, limit = size_of(entries), notes.limit(target)
    return f"{target.file}: {len(entries)} entries, {size:,} of {limit:,} characters ({100 * size // limit} %)."


async def _shown(notes: Notes, person: Person, target: Target) -> tuple[Text, ...]:
    """The entries with their labels, unless others would read them; first how much room they take."""
    entries = await notes.read(person, target)
    used = Text(text=_usage(notes, target, entries), origin=Origin.MEMORY)
    if person.shared:
        return used, Text(text=" (What they hold is not shown where others read along.)", origin=Origin.MEMORY)
    found = await notes.found(person, target)
    labels = [Origin.TOOL if entry in found else Origin.MEMORY for entry in entries]
    both = zip(entries, labels, strict=True)
    return used, *(Text(text=f"\n{n}. {entry}", origin=label) for n, (entry, label) in enumerate(both, 1))


def memory_tools(needs: Needs) -> MemoryTools:
    """The toolset `memory`."""
    return MemoryTools(open_notes=needs.later(Notes), is_owner=needs.get(Standings).is_owner)


CONVERSATIONS = "hermes_agent.memory.conversations:Conversations"


class ConversationTools:
    """The tool `session_search` over past conversations; `store` opens the log at the first call."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    @tool(effect=Effect.READS)
    async def session_search(
        self,
        context: CallContext,
        query: str = "",
        session: str = "",
        around: Annotated[int, msgspec.Meta(ge=0)] = 0,
        limit: Annotated[int, msgspec.Meta(ge=1, le=20)] = 5,
    ) -> Answer:
        """Recall past conversations and what left this one: find by query, read a session, or list recent ones.

        Args:
            query: words, "phrases", -without, dates
            around: message number to read from
        """
        if query and session:
            raise BadArguments("Give query to find, or session to read, not both.")
        past = late(CONVERSATIONS)(self._store(), context.session, context.speaker)
        try:
            text = await _answer(past, query, session, around, limit)
        except StoreError as error:
            raise ToolError(str(error)) from error
        return Answer(parts=(Text(text=text, origin=Origin.TOOL),))


async def _answer(past: Conversations, query: str, session: str, around: int, limit: int) -> str:
    if session:
        return await past.read(session, around)
    return await past.discover(query, limit) if query else await past.browse(limit)


def recall_tools(needs: Needs) -> ConversationTools:
    """The toolset `recall`."""
    return ConversationTools(needs.later(Store))


PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One version of a notes file for display: `diff` has a line for each line added (`+`) or removed (`-`)."""

    id: int
    at: float
    item: str
    author: str
    principal: str
    action: str
    session: str
    first: int
    last: int
    undoes: int | None
    diff: tuple[str, ...]


def line_of(version: Version) -> LedgerRow:
    """The version as a row for display."""
    change = version.change
    before, after = (decoded(body).splitlines() for body in (change.before, change.after))
    changed = list(unified_diff(before, after, lineterm="", n=0))[2:]
    return LedgerRow(
        id=version.id,
        at=change.at,
        item=change.item,
        author=change.author.value,
        principal=change.principal,
        action=change.action,
        session=change.session,
        first=change.first,
        last=change.last,
        undoes=change.undoes,
        diff=tuple(each for each in changed if not each.startswith("@@")),
    )


async def log(notes: Notes, items: Sequence[str] = (), limit: int = PAGE) -> list[LedgerRow]:
    """The versions of these files (none given: all), newest first; manual edits are recorded before."""
    known = items or await _items(notes)
    await notes.notice(known)
    found = [version for item in known for version in await notes.store.versions.list(Kind.MEMORY, item, limit=limit)]
    return [line_of(version) for version in sorted(found, key=lambda each: -each.id)[:limit]]


async def undo(notes: Notes, number: int | None, by: By, items: Sequence[str] = ()) -> tuple[Version, Saved]:
    """Undo the change of that number, or the newest one not undone yet. Raises `HermesError` where there is none;
    `items` are the allowed files (none given: all)."""
    await notes.notice(items or await _items(notes))
    version = await _newest(notes, items) if number is None else await notes.store.versions.get(number)
    if version is None or version.change.kind is not Kind.MEMORY or (items and version.change.item not in items):
        raise HermesError("There is nothing to undo." if number is None else f"There is no version {number} of notes.")
    if await notes.store.versions.undone(version.id):
        raise HermesError(f"Version {version.id} was undone already.")
    return version, await notes.undo(version, by)


async def _newest(notes: Notes, items: Sequence[str]) -> Version | None:
    for version in await notes.store.versions.list(Kind.MEMORY, limit=10 * PAGE):
        fits = not items or version.change.item in items
        if fits and version.change.undoes is None and not await notes.store.versions.undone(version.id):
            return version
    return None


async def _items(notes: Notes) -> list[str]:
    """The owner's files, and those of all other people that the ledger knows."""
    own = [Person(key="", owner=True).item(target) for target in Target]
    return list(dict.fromkeys([*own, *await notes.store.versions.items(Kind.MEMORY)]))
