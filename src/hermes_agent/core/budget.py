"""What a run may use up: turns, time, money and tokens; pure arithmetic, no clock of its own."""

from __future__ import annotations

from dataclasses import dataclass

from hermes_agent.core.errors import LimitReached


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one run.

    `turns` counts model calls. `deadline` is a moment of `Clock.monotonic`, in seconds. `money` is in US dollars,
    `tokens` counts input and output together. None means no limit.
    """

    turns: int = 90
    deadline: float | None = None
    money: float | None = None
    tokens: int | None = None


@dataclass(slots=True, kw_only=True)
class Budget:
    """What is left of a run's limits. A limit that is reached raises `LimitReached`; the run can be continued later."""

    limits: Limits
    turns: int = 0
    money: float = 0.0
    tokens: int = 0

    def spend_turn(self, now: float) -> None:
        """Count one model call before it is made; `now` is of the deadline's clock."""
        self.check(now)
        if self.turns >= self.limits.turns:
            raise LimitReached(
                f"Stopped: the turn limit ({self.limits.turns}, `agent.max_turns`) was reached.", limit="turn limit"
            )
        self.turns += 1

    def check(self, now: float) -> None:
        """Raise if time, money or tokens are used up."""
        limits = self.limits
        if limits.deadline is not None and now >= limits.deadline:
            raise LimitReached("Stopped: the time limit (`agent.max_seconds`) was reached.", limit="time limit")
        if limits.money is not None and self.money >= limits.money:
            raise LimitReached(
                f"Stopped: the money limit (${limits.money:.2f}, `agent.max_money`) was reached.", limit="money limit"
            )
        if limits.tokens is not None and self.tokens >= limits.tokens:
            raise LimitReached(
                f"Stopped: the token limit ({limits.tokens}, `agent.max_tokens`) was reached.", limit="token limit"
            )

    def used(self, *, money: float, tokens: int) -> None:
        """Add what a call really cost."""
        self.money += money
        self.tokens += tokens

    def seconds_left(self, now: float) -> float | None:
        """Seconds until the deadline, at least 0; None without one."""
        return None if self.limits.deadline is None else max(0.0, self.limits.deadline - now)
