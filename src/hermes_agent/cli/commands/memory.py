"""`hermes memory`: read, edit and take back what is noted."""

from __future__ import annotations

from functools import partial

import click

from hermes_agent.app.operations import notes
from hermes_agent.cli.known_facts import facts
from hermes_agent.cli.operation import ask, show
from hermes_agent.cli.output import remark, say
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.errors import HermesError
from hermes_agent.host.files import read_small, write_private
from hermes_agent.memory.whose import Target


@click.group(short_help="Read, edit and take back what is noted.")
def memory() -> None:
    """Read, edit and take back what the agent notes from one conversation to the next."""


memory.add_command(facts)


@memory.command("show")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def show_(surface: Surface, as_json: bool) -> None:
    """Show the notes: yours, and those of everybody else who is known."""
    show(ask(surface, notes.read_notes), lambda found: "\n".join(map(str, found)), as_json=as_json)


@memory.command()
@click.argument("target", type=click.Choice([target.value for target in Target]), default=Target.MEMORY.value)
@pass_surface
def edit(surface: Surface, target: str) -> None:
    """Open MEMORY.md (or USER.md) in $EDITOR; the change is kept as yours. The files may also be edited directly."""
    wanted = Target(target)
    path, draft = surface.home.ensure().memories / wanted.file, surface.home.cache / f"edit.{wanted.file}"
    before = read_small(path)
    write_private(draft, before or b"")
    click.edit(filename=str(draft))
    after = read_small(draft) or b""
    try:
        version, found = ask(surface, partial(notes.put_note, target=wanted, after=after, before=before))
    except HermesError as error:
        raise click.ClickException(f"{error} Your text is kept in {draft}.") from error
    draft.unlink()
    say(f"{found.file}: version {version}." if version else f"{found.file} is as it was.")
    if found.size > found.limit:
        remark(f"{found.file} has {found.size:,} characters; the agent is shown {found.limit:,}.")


@memory.command("log")
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1), help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def log_(surface: Surface, limit: int, as_json: bool) -> None:
    """Show every change, the newest first: who made it, from which messages, what came and what went."""
    found = ask(surface, partial(notes.note_log, limit=limit))
    show(found, notes.log_lines, as_json=as_json, nothing="Nothing was noted yet.")


@memory.command("undo")
@click.argument("version", type=int, required=False)
@pass_surface
def undo_(surface: Surface, version: int | None) -> None:
    """Take a change back: the one of that number (`hermes memory log`), or the last one. The file is then as it was
    before, to the byte; where there were changes since, only the entries of this one are taken back."""
    say(notes.undo_report(*ask(surface, partial(notes.undo_note, version=version))))
