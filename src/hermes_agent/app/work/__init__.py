"""What nobody types for: how a mandate narrows an agent, and the tables of what work adds to runs and to the alarm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import HermesError
from hermes_agent.core.mandate import Mandate, Work
from hermes_agent.host.late import Needs, late

if TYPE_CHECKING:
    from hermes_agent.agent.agent import Closing
    from hermes_agent.agent.mailbox import Change
    from hermes_agent.agent.session import Session
    from hermes_agent.core.events import RunEnded
    from hermes_agent.store.database import Store
    from hermes_agent.store.sessions import Session as SessionRecord

CLOSINGS: Mapping[Work, str] = {Work.CHILD: "hermes_agent.app.work.delegation:child_end"}
"""What adds rows to the commit of a run's end, by kind of work: made of the needs, the session's row and mandate."""
DELEGATION = "hermes_agent.app.work.delegation:delegation_of"
PARENT = "hermes_agent.app.work.delegation:parent_end"
"""What the end of a run adds to its commit whose session gave others a goal."""
DELEGATES = frozenset({"delegate_task", "use_tool"})
ALARMS: tuple[str, ...] = ()
"""The sources of the alarm of a process that serves everybody: each is made of the needs."""
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


def granted_by(mandate: Mandate | None, granted: Sequence[str] | None) -> Sequence[str] | None:
    """The capabilities of a process (None: all), without those that a mandate denies."""
    if mandate is None or not mandate.denied:
        return granted
    return [each for each in (Capability if granted is None else granted) if each not in mandate.denied]


def work_closings(needs: Needs, record: SessionRecord, mandate: Mandate | None) -> tuple[Closing, ...]:
    """What the end of a run of this session adds to its commit, also where its mandate is missing or unreadable."""
    if mandate is None and record.surface in set(Work):
        mandate = Mandate(kind=Work(record.surface))
    if mandate is None or mandate.kind not in CLOSINGS:
        return (ParentEnd(needs, record),)
    return (late(CLOSINGS[mandate.kind])(needs, record, mandate), ParentEnd(needs, record))


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
