"""`hermes sessions`: list, read, find, name, copy, export and delete conversations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from hermes_agent.app.api_settings import SERVED
from hermes_agent.app.intake.session_files import without_files
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.output import remark, say, say_json, shortened, table
from hermes_agent.cli.session_lookup import with_store
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.time_format import Since, moment
from hermes_agent.cli.transcript import as_html, as_jsonl, as_markdown
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.events import Entry, Outcome, RunEnded
from hermes_agent.core.ids import RandomIds
from hermes_agent.core.inbound import Conversation, Inbound, Principal
from hermes_agent.core.plural import plural
from hermes_agent.host.late import late
from hermes_agent.store.database import Store
from hermes_agent.store.finding.snippets import marked
from hermes_agent.store.sessions import Session

FORMATS: dict[str, Callable[[Session, Sequence[Entry]], str]] = {
    "jsonl": as_jsonl,
    "md": as_markdown,
    "html": as_html,
}
PAGE = 200
CLI = "cli"
ONESHOT = "hermes_agent.cli.oneshot:run"


@click.group(short_help="List, read, find, export and delete conversations.")
def sessions() -> None:
    """List, read, find, export and delete conversations. SESSION is an id, a title, or how either begins."""


@sessions.command("list")
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1), help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def list_(surface: Surface, limit: int, as_json: bool) -> None:
    """List the sessions, the most recently used first."""

    async def act(store: Store) -> list[Session]:
        return [session async for session in newest_first(store, limit)]

    found = with_store(surface, act)
    if as_json:
        say_json(found)
    elif not found:
        remark("There are no sessions yet. `hermes` begins one.")
    else:
        rows = [(each.id, moment(each.updated), each.surface, shortened(each.title or "-", 60)) for each in found]
        say(table(rows, ("SESSION", "USED", "WHERE", "TITLE")))


@sessions.command()
@click.argument("session")
@click.option("--json", "as_json", is_flag=True, help="The whole log as JSON.")
@pass_surface
def show(surface: Surface, session: str, as_json: bool) -> None:
    """Show what was said and done in a session."""
    found, entries = with_store(surface, lambda store: whole(store, session))
    if as_json:
        say_json({"session": found, "entries": entries})
    else:
        say(as_markdown(found, entries).rstrip("\n"))


@sessions.command()
@click.argument("words", nargs=-1, required=True)
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1), help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def search(surface: Surface, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find messages by their words, the best first; "quoted words" stand together, -word is left out."""
    query = " ".join(map(asked, words))
    hits = with_store(surface, lambda store: store.search.search(query, limit=limit))
    if as_json:
        say_json(hits)
    elif not hits:
        remark("No message holds these words.")
    else:
        for hit in hits:
            say(f"{hit.session}  {moment(hit.at)}  #{hit.number} {hit.role.value}")
            say(f"    {marked(hit.snippet, hit.marks)}")


def asked(word: str) -> str:
    """An argument as part of a query. The shell has taken the quotes off: several words in one argument stand together,
    unless they are a query by themselves."""
    is_query = '"' in word or any(each.startswith("-") or each == "NOT" for each in word.split())
    return f'"{word}"' if " " in word and not is_query else word


@sessions.command()
@click.argument("session")
@click.argument("title")
@pass_surface
def rename(surface: Surface, session: str, title: str) -> None:
    """Give a session another title."""

    async def act(store: Store) -> str:
        found = await store.sessions.find(session)
        await store.sessions.rename(found.id, title)
        return found.id

    say(f"{with_store(surface, act)} is now called “{title}”.")


@sessions.command()
@click.argument("session")
@click.option(
    "-f", "--format", "kind", default="md", show_default=True, type=click.Choice(list(FORMATS)), help="As what."
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file.")
@pass_surface
def export(surface: Surface, session: str, kind: str, output: Path | None) -> None:
    """Write a session out: jsonl is the whole log, md and html are for reading."""
    found, entries = with_store(surface, lambda store: whole(store, session))
    text = FORMATS[kind](found, entries)
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
    """Copy a session, to go on from there in another way."""

    async def act() -> Session:
        async with late("hermes_agent.app.opening:open_system")(surface.home.ensure()) as runtime:
            source = await runtime.store.sessions.find(session)
            copy: Session = await runtime.hermes.branch(source, title)
            return copy

    copy = asyncio.run(act())
    say(copy.id)
    remark(f"Go on with `hermes -r {copy.id}`.")


@sessions.command()
@click.argument("session")
@pass_surface
def resume(surface: Surface, session: str) -> int:
    """Have a run tried again that waits, was stopped or reached a limit. Its reply goes where the session is held: one
    of a terminal is answered here, one of a chat by the gateway."""
    found = with_store(surface, lambda store: store.sessions.find(session))
    if found.surface == CLI:
        code: int = late(ONESHOT)(replace(surface.invocation, resume=found.id, question=""))
        return code
    goes_on = with_store(surface, lambda store: taken_up(store, found))
    if goes_on:
        say(f"{found.id} goes on; its reply comes in its chat ({found.surface}), as soon as a gateway runs.")
    else:
        say(f"Nothing to resume: the last run of {found.id} is complete.")
    return Exit.OK


async def taken_up(store: Store, found: Session) -> bool:
    """Have the gateway work on a session again; False where its last run has ended well."""
    if await store.lanes.insist(found.id):
        return True
    ends = [each.event for each in await store.history.entries(found.id) if isinstance(each.event, RunEnded)]
    if not ends or ends[-1].outcome is Outcome.ANSWERED:
        return False
    platform, _, user = found.principal.partition(":")
    inbound = Inbound(
        source=CLI,
        source_id=RandomIds().short(),
        principal=Principal(platform=platform, user=user),
        conversation=Conversation.parse(found.conversation),
        parts=(),
        received=SystemClock().now(),
        resumes=True,
    )
    return await store.inbox.accept(inbound, found.id, SERVED) is not None


@sessions.command()
@click.option("--before", required=True, type=Since(), metavar="WHEN", help="Unused since: 90d, 12w, or a date.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@pass_surface
def prune(surface: Surface, before: float, yes: bool) -> None:
    """Delete the sessions that were not used for long. What they cost stays in `hermes cost`."""

    async def old(store: Store) -> int:
        return len([1 async for session in newest_first(store) if session.updated < before])

    count = with_store(surface, old)
    if not count:
        say(f"No session is unused since {moment(before)}.")
        return
    if not yes:
        click.confirm(f"Delete {plural(count, 'session')} unused since {moment(before)}?", abort=True, err=True)

    async def remove(store: Store) -> Sequence[str]:
        async with without_files(store, surface.home):
            return await store.sessions.prune(before)

    removed = with_store(surface, remove)
    say(f"{plural(len(removed), 'session')} deleted.")


@sessions.command()
@click.argument("session")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@pass_surface
def delete(surface: Surface, session: str, yes: bool) -> None:
    """Delete a session's log and files. What it cost stays in `hermes cost`."""
    found = with_store(surface, lambda store: store.sessions.find(session))
    if not yes:
        click.confirm(f"Delete {found.id} ({found.title or 'untitled'})?", abort=True, err=True)

    async def remove(store: Store) -> None:
        async with without_files(store, surface.home, found.id):
            await store.sessions.delete(found.id)

    with_store(surface, remove)
    say(f"{found.id} is deleted.")


@sessions.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def stats(surface: Surface, as_json: bool) -> None:
    """Show how much is kept."""
    found = with_store(surface, lambda store: store.sessions.stats())
    if as_json:
        say_json(found)
        return
    rows = [("sessions", f"{found.sessions:,}"), ("log entries", f"{found.entries:,}")]
    rows += [("database", f"{found.bytes / 1e6:,.1f} MB")]
    rows += [(f"from {surface_name}", f"{count:,}") for surface_name, count in found.surfaces.items()]
    say(table(rows, right=(1,)))


async def newest_first(store: Store, limit: int | None = None) -> AsyncIterator[Session]:
    """Sessions page by page, the most recently used first."""
    last: Session | None = None
    count = 0
    while page := await store.sessions.list(limit=PAGE, before=last):
        for last in page:
            if limit is not None and count >= limit:
                return
            count += 1
            yield last


async def whole(store: Store, name: str) -> tuple[Session, list[Entry]]:
    """A session and its log. Raises `UnknownSession`."""
    found = await store.sessions.find(name)
    return found, await store.history.entries(found.id)
