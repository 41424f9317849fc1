"""Operation on the events of all sessions of a person, as one sequence that a program reads on from a cursor."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes_agent.app.operations.sessions import PAGE, get_session, last_number, list_sessions, read_log
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Seen

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem
    from hermes_agent.core.events import Entry

OVERLAP = 60.0
"""Seconds by which clocks of several machines may differ."""
BACK = 1000
"""Entries at the end of a log among which those after a time are looked for."""
CURSOR = re.compile(r"(\d+\.\d+)((?: \w+:\d+)*)")


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
        start = max(0, await last_number(access.system, session) - BACK)
        entries = [each for each in await read_log(access, session, start) if each.at > since]
        return entries, entries[0].number - 1 if entries else start
    except HermesError:
        return [], 0


def _parsed(cursor: str) -> tuple[float, dict[str, int]]:
    found = CURSOR.fullmatch(cursor)
    if found is None:
        raise HermesError("This is no cursor: take the one of the answer before, or none.")
    pairs = [each.split(":") for each in found[2].split()]
    return float(found[1]), {name: int(number) for name, number in pairs}
