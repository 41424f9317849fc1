"""Operations on runs for programs: start one, follow it to its end or its question, stop it, and read the events of all
sessions as one sequence."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.app.operations.access import Access, HomeSystem
from hermes_agent.app.operations.sessions import PAGE, get_session, last_number, list_sessions, read_log
from hermes_agent.core.chat import Busy, Conversation, Inbound
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Answered, Asked, Entry, Event, MessageTaken, RunEnded, Seen
from hermes_agent.core.messages import Origin, Text
from hermes_agent.host.late import late
from hermes_agent.host.secrets import Secrets
from hermes_agent.host.tasks import spawn
from hermes_agent.tools.surfaces import rules_of

if TYPE_CHECKING:
    from hermes_agent.app.system import System
    from hermes_agent.runs.front import Submitted


TITLE = "hermes_agent.app.auxiliary.background_models:plain_title"
OVERLAP = 60.0
"""Seconds by which clocks of several machines may differ."""
BACK = 1000
"""Entries at the end of a log among which those after a time are looked for first."""
OLDEST = 86_400.0
"""Seconds after which a cursor is not gone on from."""
CURSOR = re.compile(r"(\d{1,15}\.\d{1,9})((?: \w+:\d{1,18})*)")


@dataclass(slots=True, kw_only=True)
class StartedRun:
    """A message that was accepted: its session, its row of the inbox, the log's number before its events, and its run,
    once that began."""

    session: str
    row: int
    after: int
    inbound: Inbound
    run: str = ""


async def start_run(
    access: Access[System], text: str, where: Conversation, *, origin: Origin, session: str = ""
) -> StartedRun:
    """Submit a message for a run of its own, in a session (empty: a new one, of this conversation). `origin` says who
    wrote it. Raises `HermesError`."""
    system = access.system
    if not text.strip():
        raise HermesError("There is nothing to do: the message is empty.")
    if session:
        where = Conversation.parse((await get_session(access, session)).conversation)
    inbound = Inbound(
        source=access.who.platform,
        source_id=f"{system.ids.short()}{system.ids.short()}",
        principal=access.who,
        conversation=where,
        parts=(Text(text=text, origin=origin),),
        received=system.clock.now(),
        busy=Busy.ALONE,
    )
    if session:
        return await submit_run(access, session, inbound)
    folder = access.folder or str(system.home.root / "workspace")
    await asyncio.to_thread(Path(folder).mkdir, parents=True, exist_ok=True)
    submitted = await system.hermes.start_session(inbound, workspace=folder)
    return _started(submitted, 0, inbound)


async def submit_run(access: Access[System], session: str, inbound: Inbound) -> StartedRun:
    """Submit a message to a session. Cancelling takes it back. Raises `HermesError`."""

    async def submit() -> StartedRun:
        after = await last_number(access.system, session)
        submitted = await access.system.hermes.submit(inbound, session)
        await access.system.hermes.resume(session)  # A run that a crash left open takes the message along.
        return _started(submitted, after, inbound)

    async def take_back() -> None:
        await _stop(access, await submitting)

    submitting = spawn(submit(), name=f"submit to {session}")
    try:
        return await asyncio.shield(submitting)
    except asyncio.CancelledError:
        spawn(take_back(), name=f"stop of {session}")
        raise


def _started(submitted: Submitted, after: int, inbound: Inbound) -> StartedRun:
    assert submitted.inbox is not None  # Its identity is new.
    return StartedRun(session=submitted.session, row=submitted.inbox, after=after, inbound=inbound)


async def follow_run(access: Access[System], started: StartedRun, show: Callable[[Event], None]) -> RunEnded | Asked:
    """Show the events of the message's run, up to its end or to a question for a person; called again, those after it.
    Cancelling stops the run. Raises `NothingMore` where no run takes the message, `UnknownSession` where the session
    is deleted."""
    try:
        return await _followed(access, started, show)
    except asyncio.CancelledError:
        await asyncio.shield(spawn(_stop(access, started), name=f"stop of {started.session}"))
        raise


async def _followed(access: Access[System], started: StartedRun, show: Callable[[Event], None]) -> RunEnded | Asked:
    async with aclosing(access.system.hermes.watch(started.session, started.after, started.row)) as events:
        while True:
            seen = await anext(events)
            started.after = seen.number
            if isinstance(last := _taken(started, seen), RunEnded | Asked):
                return last
            if last is not None:
                show(last)


def _taken(started: StartedRun, seen: Seen) -> Event | None:
    """The event, if it is of the message's run."""
    if isinstance(seen.event, MessageTaken | Answered) and seen.event.inbox == started.row:
        started.run = seen.run
    return seen.event if started.run and seen.run == started.run else None


async def _stop(access: Access[System], started: StartedRun) -> None:
    """Stop the message's run, also before it begins, and no other one."""
    hermes, inbound = access.system.hermes, started.inbound
    if not started.run:
        back = replace(
            inbound, source_id=f"{inbound.source_id}:stop", parts=(), withdraws=inbound.source_id, answers=""
        )
        await hermes.withdraw(back)
    await hermes.stop_run(started.session, started.run, started.row)  # A run may just have taken it.


def toolsets_of(access: Access[System]) -> tuple[str, ...]:
    """The toolsets that the agent has where this person asks."""
    surface = rules_of(access.who.platform, access.who.standing)
    return access.system.snapshots.now.toolkit.built_in.toolsets(surface)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """Events in the order of their time, and the cursor after which the next ones come."""

    events: list[Seen]
    cursor: str


async def read_feed(access: Access[HomeSystem], cursor: str = "", session: str = "", limit: int = 100) -> Feed:
    """The events after a cursor, of one session or of all; without a cursor there are none, and the cursor is now.
    Raises `HermesError`."""
    now = access.system.clock.now()
    since, known = _parsed(cursor) if cursor else (now, {})
    if since < now - OLDEST:
        raise HermesError("This cursor is more than a day old: begin with none, and read what was said before apart.")
    recent, open_ = await _in_play(access, since)
    positions: dict[str, int] = {}
    found: list[Seen] = []
    for each in sorted({*recent, *open_, *known} if not session else {(await get_session(access, session)).id}):
        if not cursor:
            positions[each] = await last_number(access.system, each)
            continue
        entries, positions[each] = await _after(access, each, known.get(each), since)
        found += [Seen(session=each, number=new.number, run=new.run, at=new.at, event=new.event) for new in entries]
    found.sort(key=lambda each: (each.at, each.session, each.number))
    shown, is_cut = found[:limit], len(found) > limit
    positions |= {seen.session: seen.number for seen in shown}
    if not is_cut:  # Everything is read: only what may still be written late has to be kept in mind.
        kept = {*open_, *(name for name, at in recent.items() if at > now - OVERLAP), *((session,) if session else ())}
        positions = {name: number for name, number in positions.items() if name in kept}
    at = since if is_cut else now
    return Feed(events=shown, cursor=" ".join((f"{at:.6f}", *(f"{name}:{each}" for name, each in positions.items()))))


async def _in_play(access: Access[HomeSystem], since: float) -> tuple[dict[str, float], set[str]]:
    """Sessions that were spoken in since then, and those with work in hand."""
    recent: dict[str, float] = {}
    before = ""
    while page := await list_sessions(access, PAGE, before):
        recent |= {each.id: each.updated for each in page if each.updated > since - OVERLAP}
        if page[-1].updated <= since - OVERLAP or len(page) < PAGE:
            break
        before = page[-1].id
    active = await access.system.store.activity.active()
    return recent, {each.session for each in active if access.sees_all or each.principal == access.who.key}


async def _after(access: Access[HomeSystem], session: str, number: int | None, since: float) -> tuple[list[Entry], int]:
    """The entries of a session after a number (None: after a time), and where they begin. None for a session that is
    not there any more."""
    try:
        if number is not None:
            return await read_log(access, session, number), number
        last, back = await last_number(access.system, session), BACK
        while (entries := await read_log(access, session, last - back)) and last > back and entries[0].at > since:
            back *= 4
    except HermesError:
        return [], 0
    new = [each for each in entries if each.at > since]
    return new, new[0].number - 1 if new else last


def _parsed(cursor: str) -> tuple[float, dict[str, int]]:
    found = CURSOR.fullmatch(cursor)
    if found is None:
        raise HermesError("This is no cursor: take the one of the answer before, or none.")
    pairs = [each.split(":") for each in found[2].split()]
    return float(found[1]), {name: int(number) for name, number in pairs}


async def entitle_session(access: Access[System], session: str, words: str) -> None:
    """Title a session that has none after what was said first, unless the settings turn titles off."""
    redacted = access.system.snapshots.now.needs.get(Secrets).redact(words)
    if access.system.settings.auxiliary.title.enabled and (title := late(TITLE)(redacted)):
        await access.system.store.sessions.entitle(session, title)
