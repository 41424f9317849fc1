"""What waits elsewhere than in a session, for `hermes status`: cards, goals and scheduled jobs that need somebody."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from hermes_agent.app.operations.board import list_cards
from hermes_agent.app.work import whose
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Standing, Standings
from hermes_agent.store.work import goals as goal
from hermes_agent.store.work.cards import Status
from hermes_agent.store.work.cron.records import JobState

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem


class State(StrEnum):
    """How a piece of work stands."""

    RUNNING = "runs"
    WAITING = "waits"
    QUEUED = "queued"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of work: its `kind` (`session`, `child`, `cron`, `card`, `goal`), id and title, how it stands, since when
    (seconds since 1970; 0: unknown), and in `note` what it waits for."""

    kind: str
    id: str
    title: str
    state: State
    since: float
    note: str = ""


CARDS = {
    Status.BLOCKED: (State.WAITING, "for somebody: `hermes kanban show {0}`"),
    Status.TRIAGE: (State.WAITING, "to be thought through: `hermes kanban show {0}`"),
    Status.READY: (State.QUEUED, ""),
    Status.RUNNING: (State.RUNNING, ""),
    Status.REVIEW: (State.QUEUED, "for its check"),
}
GOALS = {
    goal.State.BLOCKED: (State.WAITING, "{0} `hermes goals show {1}`"),
    goal.State.LIMITED: (State.WAITING, "{0} `hermes goals resume {1}`"),
    goal.State.WAITING: (State.WAITING, "{0}"),
    goal.State.CHECKING: (State.RUNNING, "its criteria are checked"),
}


async def standing(access: Access[HomeSystem]) -> list[Piece]:
    """The cards, goals and jobs that are not done, as far as this person may see them."""
    if access.who.standing is Standing.GUEST:
        return []
    return [*await _cards(access), *await _goals(access), *await _jobs(access)]


async def _cards(access: Access[HomeSystem]) -> list[Piece]:
    found: list[Piece] = []
    for card in (await list_cards(access)).cards:
        if (status := Status(card.status)) in CARDS:
            state, note = CARDS[status]
            note = note.format(card.id)
            found.append(Piece(kind="card", id=card.id, title=card.title, state=state, since=card.created, note=note))
    return found


async def _goals(access: Access[HomeSystem]) -> list[Piece]:
    person = whose(Standings(lambda _: access.who.standing), access.who.key)
    found: list[Piece] = []
    for each in await access.system.store.goals.list("" if access.sees_all else person):
        if each.state in GOALS:
            state, note = GOALS[each.state]
            note = note.format(each.why, each.id).strip()
            found.append(Piece(kind="goal", id=each.id, title=each.text, state=state, since=each.created, note=note))
    return found


async def _jobs(access: Access[HomeSystem]) -> list[Piece]:
    jobs = await access.system.store.cron_jobs.all("" if access.sees_all else access.who.key)
    return [
        Piece(kind="cron", id=job.id, title=job.name, state=State.STUCK, since=job.created, note=job.why)
        for job in jobs
        if job.state is JobState.BROKEN
    ]
