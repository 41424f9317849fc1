"""Operations on memory: show, edit and undo notes, and facts of the `holographic` backend, with their change logs.

The owner at the terminal sees everybody's; in a conversation people see only their own, and nothing if others read
along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hermes_agent.app.operations.access import Access, HomeSystem, Kind, Noun, option, place, verb
from hermes_agent.core.clock import RandomIds, moment
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.shown import plural
from hermes_agent.host.paths import read_small
from hermes_agent.memory.entries import decoded, entries_of, size_of
from hermes_agent.memory.notes import Notes
from hermes_agent.memory.settings import Person, Target, space_in, target_of
from hermes_agent.memory.tools import LedgerRow, log, undo
from hermes_agent.store.facts.facts import Fact, FactChange, Source
from hermes_agent.store.versions import By


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteFile:
    """A file of notes (such as MEMORY.md) with its entries; `size` and `limit` in characters."""

    file: str
    entries: tuple[str, ...]
    size: int
    limit: int

    def __str__(self) -> str:
        head = (
            f"{self.file}: {plural(len(self.entries), 'entry', 'entries')}, {self.size:,} of {self.limit:,} characters"
        )
        return "\n".join([head, *(f"  {number}. {entry}" for number, entry in enumerate(self.entries, 1))])


def person_of(access: Access[HomeSystem]) -> Person:
    """Whose notes the access reaches. Raises `HermesError` if other people read the chat."""
    if access.where is not None and access.where.is_shared:
        raise HermesError("Other people can read this chat. Ask for your notes in a private chat.")
    return Person(key=access.who.key, owner=access.sees_all)


async def read_notes(access: Access[HomeSystem]) -> list[NoteFile]:
    """The current notes."""
    notes, person = _notes(access), person_of(access)
    await log(notes, _items(access), limit=1)  # A person's own edits come into the ledger before anything is shown.
    items = [person.item(target) for target in Target]
    if access.where is None:
        items += [
            path.relative_to(notes.home.memories).as_posix() for path in notes.home.memories.glob("people/*/*.md")
        ]
    return [_file(notes, item, named_whole=access.where is None) for item in items]


async def undo_note(access: Access[HomeSystem], version: int = 0) -> str:
    """Undo a change of notes (0: the newest). Returns what was done. Raises `HermesError`."""
    taken, saved = await undo(_notes(access), version or None, _by(access), _items(access))
    if not saved.version:
        return f"Nothing of version {taken.id} of {taken.change.item} is left to undo."
    return (
        f"Version {taken.id} of {taken.change.item} is undone (version {saved.version}). "
        "New sessions use the restored text."
    )


async def put_note(
    access: Access[HomeSystem], target: Target, after: bytes, before: bytes | None
) -> tuple[int, NoteFile]:
    """Replace one of the person's files, compare-and-swap against `before`. Returns its version (0: unchanged).
    Raises `HermesError` on a conflict."""
    notes, item = _notes(access), person_of(access).item(target)
    saved = await notes.put(item, after, _by(access), expected=before)
    return saved.version, _file(notes, item, named_whole=False)


def _lines(row: LedgerRow) -> str:
    """A change with its diff."""
    source = f"  {row.session} {row.first}-{row.last}" if row.session else ""
    undoes = f" of {row.undoes}" if row.undoes else ""
    who = f"{row.author} {row.principal}".strip()
    head = f"{row.id}  {moment(row.at)}  {row.item}  {row.action}{undoes}  {who}{source}"
    return "\n".join([head, *(f"    {each}" for each in row.diff)])


def _notes(access: Access[HomeSystem]) -> Notes:
    system = access.system
    return Notes(
        home=system.home, store=system.store, clock=system.clock, ids=RandomIds(), settings=system.settings.memory
    )


def _items(access: Access[HomeSystem]) -> list[str]:
    """The files this access may see and undo; empty: all."""
    person = person_of(access)
    return [person.item(target) for target in Target] if access.where is not None or not person.owner else []


def _by(access: Access[HomeSystem]) -> By:
    return By(author=access.author, principal=access.who.key, session=access.session)


def _file(notes: Notes, item: str, *, named_whole: bool) -> NoteFile:
    entries, target = tuple(entries_of(decoded(read_small(notes.path(item))))), target_of(item)
    name = item if named_whole else target.file
    return NoteFile(file=name, entries=entries, size=size_of(entries), limit=notes.limit(target))


LIMIT = option("limit", "-n --limit", "How many at most.", Kind.COUNT, 20)
NOTES = Noun(
    name="memory",
    offline=True,
    short_help="Show, edit and undo the agent's notes.",
    help="Show, edit and undo the agent's notes.",
    verbs=(
        verb(
            "show",
            "Show the notes about you and about everybody else.",
            read_notes,
            text=lambda files: "\n".join(map(str, files)),
        ),
        verb(
            "log",
            "List all changes, newest first: author, cited messages, added and removed lines.",
            lambda access, limit: log(_notes(access), _items(access), limit),
            LIMIT,
            text=lambda rows: "\n".join(map(_lines, rows)),
            nothing="There are no notes yet.",
        ),
        verb(
            "undo",
            "Undo a change: the last one, or the one of that number in `hermes memory log`. The file is then as it "
            "was before, to the byte; if there were changes since, only the entries of this one are undone.",
            undo_note,
            place("version", Kind.NUMBER, 0),
        ),
    ),
)


NONE_KNOWN = "No facts are known."


async def retract_fact(access: Access[HomeSystem], fact: int) -> str:
    """Retract a fact; `undo_fact` restores it. Returns what was done. Raises `HermesError`."""
    known, now = access.system.store.known_facts, access.system.clock.now()
    found = await known.retract(_space(access), fact, _source(access), now)
    return f"Fact {fact} is retracted: {found.text}"


async def undo_fact(access: Access[HomeSystem], change: int) -> str:
    """Undo a change of a fact. Returns what was done. Raises `HermesError`."""
    known, now = access.system.store.known_facts, access.system.clock.now()
    made = await known.undo(_space(access), change, _source(access), now)
    return f"Change {change} of fact {made.fact} ({made.action.value}) is undone."


def fact_lines(facts: Sequence[Fact]) -> str:
    """Format facts with trust, author and source messages."""
    heads = [f"{each.id}  {moment(each.added)}  trust {each.trust:.2f}  {each.space}" for each in facts]
    told = zip(heads, facts, strict=True)
    return "\n".join(f"{head}  {_told_by(each.source)}\n    {each.text}" for head, each in told)


def change_lines(changes: Sequence[FactChange]) -> str:
    """Format changes of facts; `-` means not active."""
    lines = []
    for change in changes:
        undoes = f" of {change.undoes}" if change.undoes else ""
        trust = " to ".join("-" if each is None else f"{each:.2f}" for each in (change.before, change.after))
        what = f"fact {change.fact}  {change.action.value}{undoes}  {trust}  {_told_by(change.source)}"
        lines.append(f"{change.id}  {moment(change.at)}  {what}\n    {change.text}")
    return "\n".join(lines)


def _told_by(source: Source) -> str:
    where = f"  {source.session} {source.first}-{source.last}" if source.session else ""
    return f"{f'{source.author.value} {source.principal}'.strip()}{where}"


def _space(access: Access[HomeSystem]) -> str:
    """The memory space of the person; empty: all."""
    person = person_of(access)
    is_everybody = access.where is None and person.owner
    return "" if is_everybody else space_in(access.system.settings.memory.provider_space, person)


def _source(access: Access[HomeSystem]) -> Source:
    return Source(author=access.author, principal=access.who.key, session=access.session)


FACTS = Noun(
    name="memory facts",
    offline=True,
    short_help="The facts of the memory `holographic`.",
    help="Show, retract and restore the facts of the memory `holographic`.",
    verbs=(
        verb(
            "show",
            "List the facts in force, newest first: trust, author and cited messages.",
            lambda access, limit: access.system.store.known_facts.in_force(_space(access), limit=limit),
            replace(LIMIT, default=100),
            text=fact_lines,
            nothing=NONE_KNOWN,
        ),
        verb(
            "log",
            "List all changes, newest first; `-` stands for a retracted fact.",
            lambda access, limit: access.system.store.known_facts.log(_space(access), limit=limit),
            LIMIT,
            text=change_lines,
            nothing=NONE_KNOWN,
        ),
        verb(
            "retract",
            "Retract a fact: Hermes no longer recalls it. `undo` restores it.",
            retract_fact,
            place("fact", Kind.NUMBER),
        ),
        verb(
            "undo",
            "Undo a change, by its number in `hermes memory facts log`.",
            undo_fact,
            place("change", Kind.NUMBER),
        ),
    ),
)
