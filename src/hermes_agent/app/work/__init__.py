"""How a mandate narrows an agent, and what work (also a person's goals) adds to runs, their ends and the alarm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hermes_agent.agent.settings import AgentSettings
from hermes_agent.app.process import Options
from hermes_agent.core.chat import Standing, Standings
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import HermesError
from hermes_agent.core.mandate import Mandate, Work
from hermes_agent.core.spending import Limit, Limits
from hermes_agent.host.late import Needs, late
from hermes_agent.store.database import Store

if TYPE_CHECKING:
    from hermes_agent.agent.agent import Closing
    from hermes_agent.agent.mailbox import Change
    from hermes_agent.agent.prompt import TailSource
    from hermes_agent.agent.session import Session
    from hermes_agent.core.events import RunEnded
    from hermes_agent.store.sessions import Session as SessionRecord

CLOSINGS: Mapping[Work, str] = {
    Work.CHILD: "hermes_agent.app.work.delegation:ChildEnd",
    Work.CRON: "hermes_agent.app.work.cron:cron_closing",
}
"""What adds rows to the commit of a run's end, by kind of work: made of the needs and the session's row."""
ALARMS: tuple[str, ...] = (
    "hermes_agent.app.work.cron:cron_source",
    "hermes_agent.app.work.board:board_alarm",
    "hermes_agent.app.work.goals:goal_alarm",
)
"""The sources of the alarm of a process that serves everybody: each is made of the needs (None: there is none)."""
GOALS = "hermes_agent.app.work.goals:GoalWork"
"""The goals of a process: loaded for whoever has an open one."""
OWNER = "owner"
"""Whose the goals of the owner are, wherever they speak."""
DELEGATION = "hermes_agent.app.work.delegation:delegation_of"
PARENT = "hermes_agent.app.work.delegation:parent_end"
"""What the end of a run adds to its commit whose session gave others a goal."""
DELEGATES = frozenset({"delegate_task", "use_tool"})
NOTHING = ("todo",)
"""The toolsets where a mandate and a conversation have none in common."""


async def mandate_of(store: Store, record: SessionRecord) -> Mandate | None:
    """The mandate of a session; None where a person may type in it. Raises `HermesError` for one that is missing or
    unreadable: such a session does nothing."""
    if record.surface not in set(Work):
        return None
    try:
        found = await store.mandates.of(record.id)
    except ValueError as error:
        raise HermesError(f"What session {record.id} may do was written by a later version: {error}.") from error
    if found is None:
        raise HermesError(f"Nothing says what session {record.id} may do: it belongs to work that is gone.")
    return found


def toolsets_by(mandate: Mandate | None, narrowed: tuple[str, ...]) -> tuple[str, ...]:
    """The toolsets of a conversation (empty: all), narrowed by a mandate."""
    if mandate is None or mandate.toolsets is None:
        return narrowed
    return tuple(name for name in mandate.toolsets if not narrowed or name in narrowed) or NOTHING


def limits_by(mandate: Mandate | None, settings: AgentSettings, clock: Clock) -> Limits:
    """The limits of a run: the settings', and a mandate's where they are less."""
    usual = None if settings.max_seconds is None else clock.monotonic() + settings.max_seconds
    if mandate is None:
        return Limits(turns=settings.max_turns, deadline=usual)
    ends = [each for each in (usual, mandate.deadline(clock)) if each is not None]
    turns = settings.max_turns if mandate.turns is None else min(mandate.turns, settings.max_turns)
    return Limits(turns=turns, deadline=min(ends, default=None))


def granted_by(mandate: Mandate | None, granted: Sequence[str] | None) -> Sequence[str] | None:
    """The capabilities of a process (None: all), without those that a mandate denies."""
    if mandate is None or not mandate.denied:
        return granted
    return [each for each in (Capability if granted is None else granted) if each not in mandate.denied]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPart:
    """What work adds to one run: tail sources, changes for the commit of its end, and the job that it is charged to
    with the limits that hold."""

    tails: tuple[TailSource, ...] = ()
    closings: tuple[Closing, ...] = ()
    job: str = ""
    limits: tuple[Limit, ...] = ()


def whose(standings: Standings, principal: str) -> str:
    """Whose the goals of a principal are."""
    return OWNER if standings.is_owner(principal) else principal


async def work_part(needs: Needs, record: SessionRecord, mandate: Mandate | None) -> WorkPart:
    """What work adds to a run of this session: by its mandate, or else by the goals of its person. Raises `HermesError`
    for an agent whose person was removed."""
    if record.surface == Work.CHILD and needs.get(Standings).of(record.principal) is Standing.GUEST:
        raise HermesError(f"{record.principal} may not use this agent any more.")
    closings = work_closings(needs, record, mandate)
    if mandate is not None or record.surface in set(Work) or not await _has_goals(needs, record):
        return WorkPart(closings=closings, job=record.job, limits=mandate.limits if mandate else ())
    found: WorkPart = await needs.made(GOALS).part(record)
    return replace(found, closings=(*closings, *found.closings))


async def work_opened(needs: Needs, record: SessionRecord) -> None:
    """Go on with what an earlier process left of a session that a person opens."""
    if await _has_goals(needs, record):
        needs.made(GOALS).watch(record.id)


async def _has_goals(needs: Needs, record: SessionRecord) -> bool:
    """Whether the session's person has open goals; none count in a process that is recorded or replayed."""
    who = whose(needs.get(Standings), record.principal)
    return needs.get(Options).tape is None and await needs.get(Store).sessions.has_goals(who)


def work_ended(needs: Needs, record: SessionRecord, view: Session, ended: RunEnded) -> None:
    """Run-end listener."""
    if needs.has_made(GOALS):
        needs.made(GOALS).afterwards(record, view, ended)


async def close_work(needs: Needs) -> None:
    """End what goes on beside runs; the next process goes on with it."""
    if needs.has_made(GOALS):
        await needs.made(GOALS).close()


def work_closings(needs: Needs, record: SessionRecord, mandate: Mandate | None) -> tuple[Closing, ...]:
    """What the end of a run of this session adds to its commit, also where its mandate is missing or unreadable."""
    if mandate is None and record.surface in set(Work):
        mandate = Mandate(kind=Work(record.surface))
    if mandate is None or mandate.kind not in CLOSINGS:
        return (ParentEnd(needs, record),)
    return (late(CLOSINGS[mandate.kind])(needs, record), ParentEnd(needs, record))


def queue_of(session: str) -> str:
    """The queue of an agent that has a process of its own."""
    return f"child {session}"


class ParentEnd:
    """Adds what becomes of a session's children to the commit of its run's end. Loads nothing for a session that has
    none."""

    def __init__(self, needs: Needs, record: SessionRecord) -> None:
        self._needs, self._record = needs, record

    def changes(self, session: Session, ended: RunEnded) -> Sequence[Change]:
        """See `PARENT`."""
        if not (session.delegated or any(call.name in DELEGATES for call in session.open_calls)):
            return ()
        found: Sequence[Change] = late(PARENT)(self._needs, self._record, session, ended)
        return found
