"""`hermes memory`: read, edit and take back what is noted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from hermes_agent.app.household import notes_of, owner_by
from hermes_agent.cli.known_facts import facts
from hermes_agent.cli.output import remark, say, say_json
from hermes_agent.cli.session_lookup import with_store
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.time_format import moment
from hermes_agent.core.errors import HermesError
from hermes_agent.core.plural import plural
from hermes_agent.host.files import read_small, write_private
from hermes_agent.memory.entries import decoded as text_of
from hermes_agent.memory.entries import entries_of, size_of
from hermes_agent.memory.log import LedgerRow, log, undo
from hermes_agent.memory.notes import Notes
from hermes_agent.memory.whose import Person, Target, target_of

T = TypeVar("T")
OWNER = Person(key="", owner=True)


@click.group(short_help="Read, edit and take back what is noted.")
def memory() -> None:
    """Read, edit and take back what the agent notes from one conversation to the next."""


memory.add_command(facts)


@memory.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def show(surface: Surface, as_json: bool) -> None:
    """Show the notes: yours, and those of everybody else who is known."""
    found = _with_notes(surface, _everything)
    if as_json:
        say_json([{"file": item, "entries": entries, "size": size_of(entries)} for item, entries in found.items()])
        return
    for item, entries in found.items():
        limit = _limit(surface, target_of(item))
        say(f"{item}: {plural(len(entries), 'entry', 'entries')}, {size_of(entries):,} of {limit:,} characters")
        for number, entry in enumerate(entries, 1):
            say(f"  {number}. {entry}")


@memory.command()
@click.argument("target", type=click.Choice([target.value for target in Target]), default=Target.MEMORY.value)
@pass_surface
def edit(surface: Surface, target: str) -> None:
    """Open MEMORY.md (or USER.md) in $EDITOR; the change is kept as yours. The files may also be edited directly."""
    item = OWNER.item(Target(target))
    path, draft = surface.home.ensure().memories / item, surface.home.cache / f"edit.{item}"
    before = read_small(path)
    write_private(draft, before or b"")
    click.edit(filename=str(draft))
    after = read_small(draft) or b""
    try:
        by = owner_by()
        saved = _with_notes(surface, lambda notes: notes.put(item, after, by, expected=before))
    except HermesError as error:
        raise click.ClickException(f"{error} Your text is kept in {draft}.") from error
    draft.unlink()
    size, limit = size_of(saved.entries), _limit(surface, Target(target))
    say(f"{item}: version {saved.version}." if saved.version else f"{item} is as it was.")
    if size > limit:
        remark(f"{item} has {size:,} characters; the agent is shown {limit:,}.")


@memory.command("log")
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1), help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def log_(surface: Surface, limit: int, as_json: bool) -> None:
    """Show every change, the newest first: who made it, from which messages, what came and what went."""
    found = _with_notes(surface, lambda notes: log(notes, limit=limit))
    if as_json:
        say_json(found)
    elif not found:
        remark("Nothing was noted yet.")
    for line in () if as_json else found:
        say(change_report(line))


@memory.command("undo")
@click.argument("version", type=int, required=False)
@pass_surface
def undo_(surface: Surface, version: int | None) -> None:
    """Take a change back: the one of that number (`hermes memory log`), or the last one. The file is then as it was
    before, to the byte; where there were changes since, only the entries of this one are taken back."""
    by = owner_by()
    taken, saved = _with_notes(surface, lambda notes: undo(notes, version, by))
    if saved.version:
        say(f"Version {taken.id} of {taken.change.item} is taken back (version {saved.version}).")
    else:
        say(f"Nothing is left of version {taken.id} of {taken.change.item}.")


def change_report(line: LedgerRow) -> str:
    """One change in words, its lines below."""
    source = f"  {line.session} {line.first}-{line.last}" if line.session else ""
    undoes = f" of {line.undoes}" if line.undoes else ""
    who = f"{line.author} {line.principal}".strip()
    head = f"{line.id}  {moment(line.at)}  {line.item}  {line.action}{undoes}  {who}{source}"
    return "\n".join([head, *(f"    {each}" for each in line.diff)])


async def _everything(notes: Notes) -> dict[str, tuple[str, ...]]:
    await log(notes, limit=1)  # A person's own edits come into the ledger before anything is shown of it.
    files = [OWNER.item(target) for target in Target]
    files += [path.relative_to(notes.home.memories).as_posix() for path in notes.home.memories.glob("people/*/*.md")]
    return {item: tuple(entries_of(text_of(read_small(notes.path(item))))) for item in files}


def _limit(surface: Surface, target: Target) -> int:
    settings = surface.loaded.value.memory
    return int(settings.user_char_limit if target is Target.USER else settings.memory_char_limit)


def _with_notes(surface: Surface, act: Callable[[Notes], Awaitable[T]]) -> T:
    settings = surface.loaded.value.memory
    return with_store(surface, lambda store: act(notes_of(surface.home, store, settings)))
