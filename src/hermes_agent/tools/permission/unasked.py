"""What a run may use, and whether the person whose run it is wants no questions in it (`/yolo`)."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability


@dataclass(slots=True)
class RunGrant:
    """Whether one run goes unasked: `principal` said so, empty where nobody did."""

    principal: str = ""

    def holds_for(self, speaker: str) -> bool:
        """Whether a run works on the words of the person who said it, and of nobody else."""
        return bool(self.principal) and self.principal == speaker


@dataclass(frozen=True, slots=True, kw_only=True)
class Standpoint:
    """What a run may use, and whether a person is there to be asked. `grants` is what one principal, by their key, may
    use where it runs. `unasked` is what the person said about questions in it."""

    granted: frozenset[Capability] = frozenset(Capability)
    grants: Callable[[str], frozenset[Capability]] = lambda _: frozenset(Capability)
    attended: bool = True
    unasked: RunGrant = field(default_factory=RunGrant)

    def granted_to(self, speakers: Set[str]) -> frozenset[Capability]:
        """What the run may use while it works on these people's words: what each of them may."""
        return self.granted.intersection(*map(self.grants, speakers))


class Unasked:
    """What people said, by session. It is kept in memory alone: after a crash there are questions again."""

    def __init__(self) -> None:
        self._waiting: dict[str, str] = {}
        self._running: dict[str, RunGrant] = {}

    def begin(self, session: str) -> RunGrant:
        """The grant of a run that begins; what was said before it holds for it and for no later one."""
        grant = self._running[session] = RunGrant(self._waiting.pop(session, ""))
        return grant

    def say(self, session: str, principal: str, *, running: bool) -> None:
        """A person wants no questions in the run under way, or else in the next one."""
        if running and session in self._running:
            self._running[session].principal = principal
        else:
            self._waiting[session] = principal

    def take_back(self, session: str) -> None:
        """There are questions again, also in the run under way."""
        self._waiting.pop(session, None)
        if session in self._running:
            self._running[session].principal = ""
