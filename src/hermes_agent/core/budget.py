"""What a run may use up of turns and time; pure arithmetic, no clock of its own. Money and tokens: `core.spending`."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import LimitReached


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one run.

    `turns` counts model calls. `deadline` is a moment of `Clock.monotonic`, in seconds; None means no limit.
    """

    turns: int = 90
    deadline: float | None = None


@dataclass(slots=True, kw_only=True)
class Budget:
    """What is left of a run's limits. A limit that is reached raises `LimitReached`; the run can be continued later."""

    limits: Limits
    turns: int = 0

    def spend_turn(self, now: float) -> None:
        """Count one model call before it is made; `now` is of the deadline's clock."""
        self.check(now)
        if self.turns >= self.limits.turns:
            raise LimitReached(
                f"Stopped: the turn limit ({self.limits.turns}, `agent.max_turns`) was reached.", limit="turn limit"
            )
        self.turns += 1

    def check(self, now: float) -> None:
        """Raise if the time is used up."""
        deadline = self.limits.deadline
        if deadline is not None and now >= deadline:
            raise LimitReached("Stopped: the time limit (`agent.max_seconds`) was reached.", limit="time limit")

    def seconds_left(self, now: float) -> float | None:
        """Seconds until the deadline, at least 0; None without one."""
        return None if self.limits.deadline is None else max(0.0, self.limits.deadline - now)
