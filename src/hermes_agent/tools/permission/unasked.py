"""Capabilities of a run, and runs without approval questions (`/yolo`)."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability

AUTO_EDIT = "auto-edit"


@dataclass(slots=True)
class RunGrant:
    """Whether approval questions are off for one run: the `principal` who turned them off, empty if they are on."""

    principal: str = ""

    def holds_for(self, speaker: str) -> bool:
        """Whether the run works only on messages of the person who turned questions off."""
        return bool(self.principal) and self.principal == speaker


@dataclass(frozen=True, slots=True, kw_only=True)
class Standpoint:
    """Permission context of a run: its capabilities, and whether a person can be asked. By a principal's key, `grants`
    gives its capabilities and `is_owner` says whether it is the owner; `unasked` says whether questions are off,
    `mode` is the session's own `approvals.mode` (empty: the settings'), or `auto-edit`: nobody is asked about changes
    of files."""

    granted: frozenset[Capability] = frozenset(Capability)
    grants: Callable[[str], frozenset[Capability]] = lambda _: frozenset(Capability)
    is_owner: Callable[[str], bool] = lambda _: True
    attended: bool = True
    mode: str = ""
    unasked: RunGrant = field(default_factory=RunGrant)

    def asks_nothing(self, speaker: str, needs: Set[Capability]) -> bool:
        """Whether questions are off for a call of a run of this person."""
        edits = Capability.FS_WRITE in needs and Capability.EXEC not in needs and self.is_owner(speaker)
        return self.unasked.holds_for(speaker) or (self.mode == AUTO_EDIT and edits)

    def granted_to(self, speakers: Set[str]) -> frozenset[Capability]:
        """The run's capabilities while it works on messages of these people: those that all of them have."""
        return self.granted.intersection(*map(self.grants, speakers))


class Unasked:
    """Who turned approval questions off (`/yolo`), by session; in memory: after a crash questions are on again."""

    def __init__(self) -> None:
        self._waiting: dict[str, str] = {}
        self._lasting: dict[str, str] = {}
        self._running: dict[str, RunGrant] = {}

    def begin(self, session: str) -> RunGrant:
        """The grant of a starting run; an earlier `/yolo` holds for this run only."""
        grant = self._running[session] = RunGrant(self._waiting.pop(session, "") or self._lasting.get(session, ""))
        return grant

    def say(self, session: str, principal: str, *, running: bool) -> None:
        """Turn questions off for the current run, or else the next one."""
        if running and session in self._running:
            self._running[session].principal = principal
        else:
            self._waiting[session] = principal

    def last(self, session: str, principal: str) -> None:
        """Turn questions off for the current run and all later ones."""
        self._lasting[session] = principal
        if session in self._running:
            self._running[session].principal = principal

    def lasts(self, session: str) -> bool:
        """Whether questions are off for all runs of the session."""
        return session in self._lasting

    def take_back(self, session: str) -> None:
        """Turn questions on again, also for the current run."""
        self._waiting.pop(session, None)
        self._lasting.pop(session, None)
        if session in self._running:
            self._running[session].principal = ""

    def holds(self, session: str) -> bool:
        """Whether questions are off for the session's current or next run."""
        running = self._running.get(session)
        return session in self._waiting or (running is not None and bool(running.principal))
