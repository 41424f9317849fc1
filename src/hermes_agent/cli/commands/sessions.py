"""Subcommand `hermes sessions`: list, read, search, rename, branch, export and delete sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermes_agent.app.operations import sessions as operations
from hermes_agent.app.operations.sessions import SessionRecord, Stats, resume_run
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.operation import ask, ask_system
from hermes_agent.cli.output import remark, say, shortened, show, table
from hermes_agent.cli.start import run_surface
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.time_format import Since
from hermes_agent.cli.transcript import as_html, as_jsonl, as_markdown
from hermes_agent.core.clock import moment
from hermes_agent.core.events import Entry
from hermes_agent.core.shown import plural

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem
    from hermes_agent.app.operations.sessions import Hit
    from hermes_agent.app.system import System

FORMATS: dict[str, Callable[[SessionRecord, Sequence[Entry]], str]] = {
    "jsonl": as_jsonl,
    "md": as_markdown,
    "html": as_html,
}
CLI = "cli"


@click.group(short_help="List, read, search, export and delete sessions.")
def sessions() -> None:
    """List, read, search, export and delete sessions. SESSION is an id, a title, or the beginning of one."""


@sessions.command("list")
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1), help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def list_(surface: Surface, limit: int, as_json: bool) -> None:
    """List the sessions, the most recently used first."""

    found = ask(surface, partial(operations.list_sessions, limit=limit))
    show(found, listed, as_json=as_json, nothing="There are no sessions yet. `hermes` starts one.")


def listed(found: Sequence[SessionRecord]) -> str:
    """Sessions as a table."""
    rows = [(each.id, moment(each.updated), each.surface, shortened(each.title or "-", 60)) for each in found]
    return table(rows, ("SESSION", "USED", "WHERE", "TITLE"))


@sessions.command("show")
@click.argument("session")
@click.option("--json", "as_json", is_flag=True, help="The whole log as JSON.")
@pass_surface
def show_(surface: Surface, session: str, as_json: bool) -> None:
    """Show what was said and done in a session."""
    found, entries = ask(surface, partial(operations.read_session, name=session))
    told = {"session": found, "entries": entries}
    show(told, lambda _: as_markdown(found, entries).rstrip("\n"), as_json=as_json)


@sessions.command()
@click.argument("words", nargs=-1, required=True)
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1), help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def search(surface: Surface, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find messages by their words, the best first; "quoted words" stand together, -word is left out."""
    query = " ".join(map(asked, words))
    hits = ask(surface, partial(operations.search_messages, words=query, limit=limit))
    show(hits, found_words, as_json=as_json, nothing="No message contains these words.")


def found_words(hits: Sequence[Hit]) -> str:
    """Search hits with their context."""
    return "\n".join(
        f"{hit.session}  {moment(hit.at)}  #{hit.number} {hit.role.value}\n    {hit.marked}" for hit in hits
    )


def asked(word: str) -> str:
    """An argument as part of a search query: several words in one argument form a phrase, as the shell removed the
    quotes, unless they are a query themselves."""
    is_query = '"' in word or any(each.startswith("-") or each == "NOT" for each in word.split())
    return f'"{word}"' if " " in word and not is_query else word


@sessions.command()
@click.argument("session")
@click.argument("title")
@pass_surface
def rename(surface: Surface, session: str, title: str) -> None:
    """Change the title of a session."""

    async def act(access: Access[HomeSystem]) -> SessionRecord:
        return await operations.rename_session(access, (await operations.find_session(access, session)).id, title)

    say(f"{ask(surface, act).id} is now called “{title}”.")


@sessions.command()
@click.argument("session")
@click.option(
    "-f", "--format", "kind", default="md", show_default=True, type=click.Choice(list(FORMATS)), help="As what."
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file.")
@pass_surface
def export(surface: Surface, session: str, kind: str, output: Path | None) -> None:
    """Export a session: jsonl is the whole log, md and html are for reading."""
    found, entries = ask(surface, partial(operations.read_session, name=session))
    text = surface.secrets.redact(FORMATS[kind](found, entries))
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text)
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror}.") from error
    remark(f"{len(entries)} entries of {found.id} are in {output}.")


@sessions.command()
@click.argument("session")
@click.option("-t", "--title", default="", help="The copy's title.")
@pass_surface
def branch(surface: Surface, session: str, title: str) -> None:
    """Copy a session and continue from there."""

    async def act(access: Access[System]) -> SessionRecord:
        return await operations.branch_session(access, (await operations.find_session(access, session)).id, title)

    copy = ask_system(surface, act)
    say(copy.id)
    remark(f"Continue it with `hermes -r {copy.id}`.")


@sessions.command()
@click.argument("session")
@pass_surface
def resume(surface: Surface, session: str) -> int:
    """Resume a run that crashed, was stopped or reached a limit. The reply goes where the session belongs: a
    terminal's is answered here, a chat's by the gateway."""
    found = ask(surface, partial(operations.find_session, name=session))
    if found.surface == CLI:
        return run_surface("one-shot", replace(surface.invocation, resume=found.id, question=""))
    if ask(surface, partial(resume_run, record=found)):
        say(f"{found.id} goes on; its reply comes in its chat ({found.surface}), as soon as a gateway runs.")
    else:
        say(f"Nothing to resume: the last run of {found.id} is complete.")
    return Exit.OK


@sessions.command()
@click.option("--before", required=True, type=Since(), metavar="WHEN", help="Unused since: 90d, 12w, or a date.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@pass_surface
def prune(surface: Surface, before: float, yes: bool) -> None:
    """Delete sessions that were not used for long. Their cost stays in `hermes cost`."""

    count = ask(surface, partial(operations.count_unused, before=before))
    if not count:
        say(f"No session is unused since {moment(before)}.")
        return
    if not yes:
        click.confirm(f"Delete {plural(count, 'session')} unused since {moment(before)}?", abort=True, err=True)

    removed = ask(surface, partial(operations.prune_sessions, before=before))
    say(f"{plural(len(removed), 'session')} deleted.")


@sessions.command()
@click.argument("session")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@pass_surface
def delete(surface: Surface, session: str, yes: bool) -> None:
    """Delete a session's log and files. Its cost stays in `hermes cost`."""
    found = ask(surface, partial(operations.find_session, name=session))
    if not yes:
        click.confirm(f"Delete {found.id} ({found.title or 'untitled'})?", abort=True, err=True)

    ask(surface, partial(operations.delete_session, session=found.id))
    say(f"{found.id} is deleted.")


@sessions.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def stats(surface: Surface, as_json: bool) -> None:
    """Show the number of sessions and events, and the size of the database."""
    show(ask(surface, operations.session_stats), counted, as_json=as_json)


def counted(found: Stats) -> str:
    """Stored data as a table."""
    rows = [("sessions", f"{found.sessions:,}"), ("log entries", f"{found.entries:,}")]
    rows += [("database", f"{found.bytes / 1e6:,.1f} MB")]
    rows += [(f"from {name}", f"{count:,}") for name, count in found.surfaces.items()]
    return table(rows, right=(1,))
