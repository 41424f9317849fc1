"""Subcommand `hermes sessions`: list, read, search, rename, branch, export and delete sessions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from hermes_agent.app.operations import sessions as operations
from hermes_agent.app.operations.sessions import SessionRecord, SessionSummary, Stats, resume_run
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.operation import ask, ask_system
from hermes_agent.cli.output import GAP, prints_json, remark, say, shortened, show, table, width
from hermes_agent.cli.start import run_surface
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.time_format import Since
from hermes_agent.cli.transcript import as_html, as_jsonl, as_markdown
from hermes_agent.core.clock import SystemClock, ago, moment
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
BETWEEN = "****"
"""What the marks of two neighbouring words leave between them, where a language has no spaces."""
LEAST, MOST = 20, 60
"""Columns of a title."""


@click.group(short_help="List, read, search, export and delete sessions.")
def sessions() -> None:
    """List, read, search, export and delete sessions. SESSION is an id, a title, or the beginning of one."""


@sessions.command("list")
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1), help="How many at most.")
@pass_surface
def list_(surface: Surface, limit: int) -> None:
    """List the sessions, the most recently used first, with their title or first words."""
    found = ask(surface, partial(operations.summarize_sessions, limit=limit))
    facts = ("words", "messages", "calls", "cost")
    plain = [{**asdict(each.record), **{name: getattr(each, name) for name in facts}} for each in found]
    show(plain, lambda _: listed(found), nothing="There are no sessions yet. `hermes` starts one.")


def listed(found: Sequence[SessionSummary]) -> str:
    """Sessions as a table, as wide as the terminal."""
    rows = [
        (each.record.id, ago(SystemClock().now() - each.record.updated), _where(each), f"{each.messages}", each.price)
        for each in found
    ]
    heads = ("SESSION", "USED", "WHERE", "MESSAGES", "COST", "")
    taken = max(map(width, table([(*row, "") for row in rows], heads).split("\n"))) + len(GAP)
    room = max(LEAST, get_terminal_size().columns - taken) if sys.stdout.isatty() else MOST
    named = [(*row, shortened(each.name, room)) for row, each in zip(rows, found, strict=True)]
    return table(named, (*heads[:-1], "TITLE"), right=(3, 4))


def _where(each: SessionSummary) -> str:
    """The folder of a session of the terminal, the surface of any other."""
    record = each.record
    return shortened(Path(record.workspace).name or "/", LEAST) if record.surface == CLI else record.surface


@sessions.command("show")
@click.argument("session")
@pass_surface
def show_(surface: Surface, session: str) -> None:
    """Show what was said and done in a session."""
    found, entries = ask(surface, partial(operations.read_session, name=session))
    show({"session": found, "entries": entries}, as_markdown(found, entries).rstrip("\n"))


@sessions.command(context_settings={"ignore_unknown_options": True})  # `-word` leaves a word out.
@click.argument("words", nargs=-1, required=True)
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1), help="How many at most.")
@pass_surface
def search(surface: Surface, words: tuple[str, ...], limit: int) -> None:
    """Find messages by their words, the best first; "quoted words" stand together, -word is left out."""
    hits = ask(surface, partial(operations.search_messages, words=" ".join(map(asked, words)), limit=limit))
    show(hits, found_words, nothing="No message contains these words.", has_marks=True)


def found_words(hits: Sequence[Hit]) -> str:
    """Search hits with their context."""
    heads = (f"{hit.session}  {moment(hit.at)}  #{hit.number} {hit.role.value}" for hit in hits)
    return "\n".join(f"{head}\n    {hit.marked.replace(BETWEEN, '')}" for head, hit in zip(heads, hits, strict=True))


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

    renamed = ask(surface, act)
    say(f"{renamed.id} is now called “{title}”.", session=renamed.id, title=title)


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
        say(text.removesuffix("\n"), session=found.id)
        return
    try:
        output.write_text(text)
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror}.") from error
    written = f"{len(entries)} entries of {found.id} are in {output}."
    show({"session": found.id, "file": str(output)}, "", notes=(written,))


@sessions.command()
@click.argument("session")
@click.option("-t", "--title", default="", help="The copy's title.")
@pass_surface
def branch(surface: Surface, session: str, title: str) -> None:
    """Copy a session and continue from there."""

    async def act(access: Access[System]) -> SessionRecord:
        return await operations.branch_session(access, (await operations.find_session(access, session)).id, title)

    copy = ask_system(surface, act)
    say(copy.id, session=copy.id, title=copy.title)
    remark(f"Continue it with `hermes -r {copy.id}`.")


@sessions.command()
@click.argument("session")
@pass_surface
def resume(surface: Surface, session: str) -> int:
    """Resume a run that crashed, was stopped or reached a limit. The reply goes where the session belongs: a
    terminal's is answered here, a chat's by the gateway."""
    found = ask(surface, partial(operations.find_session, name=session))
    if found.surface == CLI:
        asked_for = replace(surface.invocation, resume=found.id, question="", result=prints_json())
        return run_surface("one-shot", asked_for)
    if ask(surface, partial(resume_run, record=found)):
        words = f"{found.id} goes on; its reply comes in its chat ({found.surface}), as soon as a gateway runs."
        say(words, session=found.id)
    else:
        say(f"Nothing to resume: the last run of {found.id} is complete.", session=found.id)
    return Exit.OK


@sessions.command()
@click.option("--before", required=True, type=Since(), metavar="WHEN", help="Unused since: 90d, 12w, or a date.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@pass_surface
def prune(surface: Surface, before: float, yes: bool) -> None:
    """Delete sessions that were not used for long. Their cost stays in `hermes cost`."""

    count = ask(surface, partial(operations.count_unused, before=before))
    if not count:
        say(f"No session is unused since {moment(before)}.", deleted=[])
        return
    if not yes:
        click.confirm(f"Delete {plural(count, 'session')} unused since {moment(before)}?", abort=True, err=True)

    removed = ask(surface, partial(operations.prune_sessions, before=before))
    say(f"{plural(len(removed), 'session')} deleted.", deleted=removed)


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
    say(f"{found.id} is deleted.", deleted=[found.id])


@sessions.command()
@pass_surface
def stats(surface: Surface) -> None:
    """Show the number of sessions and events, and the size of the database."""
    show(ask(surface, operations.session_stats), counted)


def counted(found: Stats) -> str:
    """Stored data as a table."""
    rows = [("sessions", f"{found.sessions:,}"), ("log entries", f"{found.entries:,}")]
    rows += [("database", f"{found.bytes / 1e6:,.1f} MB")]
    rows += [(f"from {name}", f"{count:,}") for name, count in found.surfaces.items()]
    return table(rows, right=(1,))
