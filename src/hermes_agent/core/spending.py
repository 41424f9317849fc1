"""Limits of money, tokens, turns and time: what a call asks for, where each limit stands, what the call is granted,
and the countdown of a run's limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from enum import StrEnum

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import LimitReached

NANO = 1_000_000_000
NOISE = 0.001
"""Nanodollars that an amount in floating point may be too large by; more than that is never rounded down."""
LEAST_REPLY = 16
"""Tokens; a reply that may not even be so long is not asked for."""
WARN_AT = 0.8
"""The share of a limit from which on the person and the agent are told."""


class Scope(StrEnum):
    """What a limit is counted over: a call, a run, a job, a `principal` (one person's day), a `day` (everybody's),
    or a `purpose` (the calls of one purpose in a day)."""

    CALL = "call"
    RUN = "run"
    JOB = "job"
    PRINCIPAL = "principal"
    DAY = "day"
    PURPOSE = "purpose"


class UnknownPrice(StrEnum):
    """Policy for a call of unknown price under a money limit."""

    REFUSE = "refuse"
    ALLOW = "allow"


class Unit(StrEnum):
    """The unit of a limit: money or tokens."""

    MONEY = "money"
    TOKENS = "tokens"


WHOSE = {
    Scope.CALL: "of one call",
    Scope.RUN: "of this run",
    Scope.JOB: "of this job",
    Scope.PRINCIPAL: "of this person for today",
    Scope.DAY: "of today",
    Scope.PURPOSE: "of today's calls for `{purpose}`",
}
RAISE = "`hermes config set {setting} AMOUNT` raises it (in a terminal: from the next start on)"
WAY_ON = {
    Scope.CALL: f"{RAISE}; then `/continue`.",
    Scope.RUN: "`/continue` starts again with the full limit.",
    Scope.JOB: f"{RAISE}; then `/continue`.",
    Scope.PRINCIPAL: f"The limit resets at midnight; {RAISE}. Then `/continue`.",
    Scope.DAY: f"The limit resets at midnight; {RAISE}. Then `/continue`.",
    Scope.PURPOSE: f"The limit resets at midnight; {RAISE}.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The maximum of money (nanodollars) and tokens within a scope; None means no limit. `purpose` belongs to the
    scope `purpose`."""

    scope: Scope
    money: int | None = None
    tokens: int | None = None
    purpose: str = ""

    @property
    def whose(self) -> str:
        """What the limit applies to, in words."""
        return WHOSE[self.scope].format(purpose=self.purpose)

    def setting(self, unit: Unit) -> str:
        """The dotted key of the setting."""
        return f"auxiliary.{self.purpose}.{unit}" if self.scope is Scope.PURPOSE else f"budget.{self.scope}.{unit}"


def limit_of(scope: Scope, dollars: float | None, tokens: int | None, purpose: str = "") -> Limit | None:
    """The limit that was set in US dollars and tokens; None where neither was."""
    if dollars is None and tokens is None:
        return None
    money = None if dollars is None else int(round(dollars * NANO, 3))
    return Limit(scope=scope, money=money, tokens=tokens, purpose=purpose)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The spending limits in force, each scope at most once, `purpose` at most once for each purpose."""

    limits: tuple[Limit, ...] = ()
    unknown_price: UnknownPrice = UnknownPrice.REFUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """An amount used, in nanodollars and tokens. `held` is reserved for calls that are not settled, also those of
    dead processes, whose use is unknown; unknown is not zero."""

    money: int = 0
    tokens: int = 0
    held_money: int = 0
    held_tokens: int = 0

    def of(self, unit: Unit) -> tuple[int, int]:
        """Used and held."""
        return (self.money, self.held_money) if unit is Unit.MONEY else (self.tokens, self.held_tokens)


NOTHING = Spent()


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A limit together with the amount used."""

    limit: Limit
    spent: Spent = NOTHING

    def most(self, unit: Unit) -> int | None:
        """The limit in that unit."""
        return self.limit.money if unit is Unit.MONEY else self.limit.tokens

    def left(self, unit: Unit) -> int | None:
        """What may still be reserved, at least 0; None: no limit."""
        most = self.most(unit)
        return None if most is None else max(0, most - sum(self.spent.of(unit)))

    def warns(self, unit: Unit) -> bool:
        """Whether so much is used (without reservations) that the person should be warned."""
        most = self.most(unit)
        return most is not None and self.spent.of(unit)[0] >= most * WARN_AT

    def setting(self, unit: Unit) -> str:
        """The dotted key of the limit."""
        return self.limit.setting(unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bid:
    """The most that a call could use, before it is granted.

    `tokens` is the maximum of its question, `longest` that of its reply: the requested `cap` (None: none) or the
    model's own limit, which is exact where `sure`. `question` is the maximum cost of the question and `rate` the
    price of a reply token, in nanodollars; None: unknown price. `model` is for error messages.
    """

    model: str
    tokens: int
    longest: int
    cap: int | None = None
    sure: bool = True
    question: int | None = None
    rate: float | None = None

    @property
    def is_free(self) -> bool:
        """Whether it is known to cost nothing."""
        return not self.question and self.rate == 0

    def price(self, length: int) -> int | None:
        """The most that it costs with a reply of so many tokens."""
        if self.question is None or self.rate is None:
            return None
        return self.question + math.ceil(length * self.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The permission for a call: `max_output` caps the reply in tokens (None: no cap); `money` and `tokens` are the
    maximum of the whole call, `money` None: unknown."""

    max_output: int | None
    money: int | None
    tokens: int


def grant(bid: Bid, standings: Sequence[Standing], unknown: UnknownPrice = UnknownPrice.REFUSE) -> Grant:
    """Grants the longest reply that every limit covers. Raises `LimitReached` where not even the question is
    covered."""
    least, length = min(LEAST_REPLY, bid.longest), bid.longest
    for standing, unit, left in _lefts(standings):
        affordable = _affordable(bid, unit, left)
        if affordable is None:
            if unknown is UnknownPrice.REFUSE:
                raise _unpriced(bid, standing)
            continue
        if affordable < least:
            raise _reached(bid, standing, unit)
        length = min(length, affordable)
    certain = bid.sure or bid.cap is not None or not standings
    capped = bid.cap if length == bid.longest and certain else length
    return Grant(max_output=capped, money=bid.price(length), tokens=bid.tokens + length)


def _lefts(standings: Sequence[Standing]) -> Iterator[tuple[Standing, Unit, int]]:
    for standing in standings:
        for unit in Unit:
            left = standing.left(unit)
            if left is not None:
                yield standing, unit, left


def _affordable(bid: Bid, unit: Unit, left: int) -> int | None:
    """Tokens of reply that what is left pays for, below zero where the question is too dear; None: the price is
    unknown."""
    if unit is Unit.TOKENS:
        return min(bid.longest, left - bid.tokens)
    if bid.question is None or bid.rate is None:
        return None
    if bid.is_free:
        return bid.longest
    left -= bid.question
    if left < 0:
        return -1
    if math.ceil(bid.longest * bid.rate) <= left:
        return bid.longest
    length = int(left / bid.rate)
    while length >= 0 and math.ceil(length * bid.rate) > left:  # the division may have been rounded up
        length -= 1
    return length


def _reached(bid: Bid, standing: Standing, unit: Unit) -> LimitReached:
    used, held = standing.spent.of(unit)
    needs = amount(unit, (bid.question or 0) if unit is Unit.MONEY else bid.tokens)
    reserved = f", {amount(unit, held)} is reserved for unfinished calls" if held else ""
    stand = "" if standing.limit.scope is Scope.CALL else f"{amount(unit, used)} used{reserved}; "
    setting = standing.setting(unit)
    return LimitReached(
        f"Stopped: the {unit.removesuffix('s')} limit {standing.limit.whose} "
        f"({amount(unit, standing.most(unit) or 0)}, `{setting}`) was reached: {stand}the next request alone may "
        f"need {needs}. {WAY_ON[standing.limit.scope].format(setting=setting)}",
        limit=f"{unit.removesuffix('s')} limit",
    )


def _unpriced(bid: Bid, standing: Standing) -> LimitReached:
    return LimitReached(
        f"Stopped: money is limited (`{standing.setting(Unit.MONEY)}`) and the price of {bid.model} is unknown. Set "
        "`model.price_input` and `model.price_output` (0 where it is free), or `budget.unknown_price` to `allow`, "
        "which does not count what it costs.",
        limit="money limit",
    )


def warning(standing: Standing, unit: Unit) -> str:
    """The sentence that warns of a nearly exhausted limit."""
    most, used = standing.most(unit) or 0, standing.spent.of(unit)[0]
    share = min(100, 100 * used // most) if most else 100
    return (
        f"{share} % of the {unit.removesuffix('s')} limit {standing.limit.whose} is used: "
        f"{amount(unit, used)} of {amount(unit, most)} (`{standing.setting(unit)}`)."
    )


def amount(unit: Unit, count: int) -> str:
    """An amount as a person reads it: `$0.0412`, `12,000 tokens`."""
    if unit is Unit.TOKENS:
        return f"{count:,} tokens"
    digits = 2 if count % (NANO // 100) == 0 else 4
    return f"${count / NANO:,.{digits}f}"


def nanos(dollars: float) -> int:
    """US dollars in nanodollars, rounded up; whole nanodollars that were written as dollars come back as they were."""
    return math.ceil(dollars * NANO - NOISE)


def day_of(at: float, zone: tzinfo | None = None) -> str:
    """The calendar day (`2026-11-21`) of a moment (seconds since 1970) in that time zone (None: this machine's). A
    day of 23 or 25 hours is one day."""
    return datetime.fromtimestamp(at, UTC).astimezone(zone).date().isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one run. `turns` counts model calls. `deadline` is a moment of `Clock.monotonic`, in seconds; None
    means no limit."""

    turns: int = 90
    deadline: float | None = None


@dataclass(slots=True, kw_only=True)
class Budget:
    """Counts down a run's limits. Raises `LimitReached` at a limit; the run can be continued later."""

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
