"""Operation of `hermes status`: who serves this home, what runs, what waits and for whom, and what nobody runs."""

from __future__ import annotations

from enum import StrEnum

from hermes_agent.agent.agent import asks_approval
from hermes_agent.app.operations.access import Access, HomeSystem, verb
from hermes_agent.app.operations.board import list_cards
from hermes_agent.app.settings import SERVED
from hermes_agent.app.work import whose
from hermes_agent.core.chat import Standing, Standings
from hermes_agent.core.clock import moment
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.mandate import Work
from hermes_agent.core.shown import plural
from hermes_agent.store.work import goals as goal
from hermes_agent.store.work.activity import Active, Serving
from hermes_agent.store.work.cards import Status as CardStatus
from hermes_agent.store.work.cron.records import JobState

START = "`hermes gateway start` or `hermes worker` runs it"
LONGEST = 60


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
    CardStatus.BLOCKED: (State.WAITING, "for somebody: `hermes kanban show {0}`"),
    CardStatus.TRIAGE: (State.WAITING, "to be thought through: `hermes kanban show {0}`"),
    CardStatus.READY: (State.QUEUED, ""),
    CardStatus.RUNNING: (State.RUNNING, ""),
    CardStatus.REVIEW: (State.QUEUED, "for its check"),
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
        if (status := CardStatus(card.status)) in CARDS:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The processes that serve the home, and the work that is not done. `warning` is a sentence where work waits that
    no process will do."""

    serving: tuple[Serving, ...]
    work: tuple[Piece, ...]
    warning: str = ""


async def show_status(access: Access[HomeSystem]) -> Status:
    """What runs and what waits: the owner sees everybody's, others their own."""
    activity = access.system.store.activity
    serving = tuple(await activity.serving()) if access.sees_all else ()
    active = [each for each in await activity.active() if access.sees_all or each.principal == access.who.key]
    is_served, now = bool(serving) or not access.sees_all, access.system.clock.now()
    work = [_piece(each, now, is_served=is_served) for each in active]
    work += await standing(access)
    left = sum(each.queue == SERVED and not each.held for each in active)
    idle = [f"{plural(left, 'piece')} of work wait"] if left else []
    idle += ["no scheduled job runs"] if await access.system.store.cron_jobs.are_on() else []
    warning = f"Nobody serves this home: {', '.join(idle)}. {START}." if idle and not is_served else ""
    return Status(serving=serving, work=tuple(work), warning=warning)


def _piece(active: Active, now: float, *, is_served: bool) -> Piece:
    state, note = State.QUEUED, ""
    if active.held:
        state, note = (State.WAITING, _awaited(active)) if active.waits else (State.RUNNING, "")
    elif active.ready_at > now:
        state, note = State.STUCK, f"{active.error} `hermes sessions resume {active.session}` tries again."
    elif active.question:
        state, note = State.WAITING, _awaited(active)
    elif active.queue != SERVED:
        state, note = State.STUCK, f"`hermes -r {active.session}` goes on with it."
        if active.surface == Work.CHILD:
            note = "the session that started it goes on with it"
    elif not is_served:
        note = f"nobody serves: {START}"
    kind = "session" if active.surface in ("cli", "library") else active.surface
    return Piece(kind=kind, id=active.session, title=active.title, state=state, since=active.since, note=note.strip())


def _awaited(active: Active) -> str:
    if not active.question:
        return "for other sessions"
    return "for a yes or no" if asks_approval(active.question) else "for an answer"


def status_text(status: Status) -> str:
    """The status as a person reads it."""
    lines = [f"Serving: {_served(status)}"]
    if status.warning:
        lines.append(f"! {status.warning}")
    for piece in status.work:
        title = f' "{piece.title[:LONGEST]}"' if piece.title else ""
        note = f": {piece.note}" if piece.note else ""
        since = f" since {moment(piece.since)}" if piece.since else ""
        lines.append(f"{piece.state:<7} {piece.kind} {piece.id}{title}{since}{note}")
    return "\n".join(lines if status.work else [*lines, "Nothing runs or waits."])


def _served(status: Status) -> str:
    if not status.serving:
        return "nobody (`hermes gateway start` or `hermes worker` does)."
    first = status.serving[0]
    return f"{plural(len(status.serving), 'process', 'processes')}, since {moment(first.started)}."


STATUS = verb(
    "status",
    "Show which processes serve this home, which work runs, what waits and for whom, and what nobody runs.",
    show_status,
    text=status_text,
)
