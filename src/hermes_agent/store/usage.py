"""The usage ledger: one row per model call, written before the request is sent and completed with the provider's
counts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from enum import StrEnum

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import LimitReached
from hermes_agent.core.messages import Usage
from hermes_agent.core.spending import NANO, NOTHING, Bid, Grant, Rules, Scope, Spent, grant, nanos, warning
from hermes_agent.store import accounts
from hermes_agent.store.accounts import Account, Owner
from hermes_agent.store.transaction import Columns, Keyed, Many, Row, Tables, Transaction, marks, storable

NEW = (
    "call_id, session, run, turn, purpose, provider, model, prefix, messages, reserved, at, principal, job, day, "
    "reserved_tokens, credential, shape"
)
CALL, COUNTS = f"{NEW}, outcome, seconds, cost", "known, input, output, cached, cache_write, reasoning"
OPEN = (
    f"INSERT INTO usage (home, {NEW}, outcome, {COUNTS}) VALUES ($home, {marks(17, 1)}, '', 0, 0, 0, 0, 0, 0) "
    "ON CONFLICT (call_id) DO NOTHING"
)
SETTLE = (
    "UPDATE usage SET outcome = $2, seconds = $3, known = $4, input = $5, output = $6, cached = $7, cache_write = $8, "
    "reasoning = $9, cost = $10 WHERE call_id = $1 AND outcome = '' "
    "RETURNING reserved, reserved_tokens, session, run, job, principal, day, purpose"
)
ROWS = f"SELECT {CALL}, {COUNTS} FROM usage WHERE session = $1 ORDER BY at, call_id"
TOTALS = """
SELECT {group}, count(*), CAST(sum(input) AS bigint), CAST(sum(output) AS bigint), CAST(sum(cached) AS bigint),
    CAST(sum(cache_write) AS bigint), CAST(sum(reasoning) AS bigint), coalesce(sum(cost), 0.0),
    coalesce(sum(CASE WHEN outcome = '' THEN reserved END), 0.0),
    count(CASE WHEN outcome = '' THEN 1 END), count(CASE WHEN outcome <> '' AND known = 0 THEN 1 END),
    count(CASE WHEN outcome <> '' AND cost IS NULL THEN 1 END)
FROM usage WHERE home = $home AND at >= $1 AND at < $2 AND (CAST($3 AS TEXT) = '' OR session = $3)
GROUP BY 1 ORDER BY 1
"""
USES = """
SELECT credential, count(*), max(at) FROM usage
WHERE home = $home AND at >= $2 AND provider = $1 AND credential <> ''
GROUP BY credential
"""
LATEST = {
    Scope.RUN: "SELECT session, run FROM usage WHERE home = $home AND run <> '' GROUP BY session, run "
    "ORDER BY max(at) DESC LIMIT $1",
    Scope.JOB: "SELECT job FROM usage WHERE home = $home AND job <> '' GROUP BY job ORDER BY max(at) DESC LIMIT $1",
    Scope.PRINCIPAL: "SELECT DISTINCT day, principal FROM usage WHERE home = $home AND day = $2 ORDER BY "
    "principal LIMIT $1",
}
LAST_RUN = (
    "SELECT run FROM usage WHERE session = $1 AND run <> '' AND purpose <> 'review' "
    "ORDER BY at DESC, call_id DESC LIMIT 1"
)
LAST_TIME = 1e300
UNKNOWN = Usage(known=False)


class GroupBy(StrEnum):
    """Grouping of totals; a day is one of the owner's calendar."""

    DAY = "day"
    SESSION = "session"
    PURPOSE = "purpose"
    MODEL = "model"
    PROVIDER = "provider"
    PRINCIPAL = "principal"
    JOB = "job"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """A model call. `reserved` and `cost` are US dollars, None: unknown price. `messages` is the number of messages
    after the prefix; `credential` is the name of the key, `shape` the request's fingerprint for prompt caching,
    `day` the owner's calendar day, `job` what the run belongs to. `outcome` is "" until the call is completed,
    for good where its process died."""

    call_id: str
    session: str
    run: str
    turn: int
    purpose: str
    provider: str
    model: str
    prefix: str
    messages: int
    at: float
    principal: str
    credential: str = ""
    shape: str = ""
    job: str = ""
    day: str = ""
    reserved: float | None = None
    reserved_tokens: int = 0
    outcome: str = ""
    seconds: float | None = None
    usage: Usage = UNKNOWN
    cost: float | None = None

    @property
    def owner(self) -> Owner:
        """The accounts that it is charged to."""
        return Owner(
            session=self.session,
            run=self.run,
            job=self.job,
            principal=self.principal,
            day=self.day,
            purpose=self.purpose,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Sums over the calls of one `key`.

    `cost` sums known prices only: `unpriced` counts completed calls without one, `uncounted` those without token
    counts, `open` those not completed; `reserved` is the money that the open ones may cost.
    """

    key: str
    calls: int
    usage: Usage
    cost: float
    reserved: float
    open: int
    uncounted: int
    unpriced: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """Result of a reservation: the grant, or the limit that refused the call; `warnings` are sentences for the
    person, each given once."""

    granted: Grant | LimitReached
    warnings: tuple[str, ...] = ()


new_of, call_of = Columns(UsageRow, NEW), Columns(UsageRow, CALL)
counts_of = Columns(Usage, COUNTS)
total_of = Columns(Total, "key, calls, cost, reserved, open, uncounted, unpriced")


def usage_of(row: Row) -> UsageRow:
    """The call of a row."""
    return call_of(row, usage=counts_of(row[20:]))


def _total(row: Row) -> Total:
    key, calls, *counts, cost, reserved, unsettled, uncounted, unpriced = row
    usage = counts_of((not (unsettled or uncounted), *counts))
    return total_of((key, calls, cost, reserved, unsettled, uncounted, unpriced), usage=usage)


class Ledger(Tables):
    """Table of model calls: each row is opened once, completed at most once, and outlives its session."""

    async def reserve(self, tx: Transaction, row: UsageRow, bid: Bid, rules: Rules) -> OpenCall:
        """Write the row of a new call with what the limits grant it; no row where they refuse.

        The reservation counts as used by every process from the commit until the call is completed.
        """
        found = await accounts.accounts(tx, row.owner, rules.limits, row.at)
        try:
            granted = grant(bid, [account.standing for account in found], rules.unknown_price)
        except LimitReached as limit:
            return OpenCall(granted=limit)
        money = None if granted.money is None else granted.money / NANO
        await self.open(tx, replace(row, reserved=money, reserved_tokens=granted.tokens))
        return OpenCall(granted=granted, warnings=tuple([text async for text in _warn(tx, found)]))

    async def open(self, tx: Transaction, row: UsageRow) -> None:
        """Write the row of a new call."""
        if await tx.run(OPEN, *new_of.of(row)):
            await accounts.hold(tx, row.owner, row.reserved, row.reserved_tokens)

    async def complete(
        self, tx: Transaction, call_id: str, usage: Usage, cost: float | None, outcome: str, seconds: float
    ) -> None:
        """Record what the call used; `outcome` is "ok", "stopped" or the error's class. Unknown use counts as the
        reservation."""
        counts = (usage.input, usage.output, usage.cached, usage.cache_write, usage.reasoning)
        row = await tx.row(SETTLE, call_id, storable(outcome), seconds, int(usage.known), *counts, cost)
        if row is None:
            return
        reserved, reserved_tokens, session, run, job, principal, day, purpose = row
        held = (nanos(reserved or 0.0), reserved_tokens)
        money = held[0] if cost is None else nanos(cost)
        tokens = usage.input + usage.output if usage.known else reserved_tokens
        owner = Owner(session=session, run=run, job=job, principal=principal, day=day, purpose=purpose)
        await accounts.complete(tx, owner, held, (money, tokens))

    async def totals(self, by: GroupBy, since: float = 0.0, until: float = LAST_TIME, session: str = "") -> list[Total]:
        """Sums over the calls of that time (of one session, where given), ordered by key."""
        return [
            _total(row)
            for row in await self._engine.read(lambda tx: tx.rows(TOTALS.format(group=by.value), since, until, session))
        ]

    uses = Keyed[[str, float], tuple[int, float]](USES, lambda row: (row[1], row[2]))
    """For each credential of a provider, the calls since a time, and the last one."""
    rows = Many[[str], UsageRow](ROWS, usage_of)
    """The calls of a session, oldest first."""

    async def spent(self, scope: Scope, keys: Sequence[str]) -> Spent:
        """The amount used within a scope, by its keys (see `Owner.keys`)."""
        return await self._engine.read(lambda tx: accounts.spent(tx, scope, keys)) if keys else NOTHING

    async def unpriced(self, scope: Scope, keys: Sequence[str]) -> int:
        """The number of calls within a scope with unknown price, which no sum of money includes."""
        return await self._engine.read(lambda tx: accounts.unpriced(tx, scope, keys)) if keys else 0

    async def last_run(self, session: str) -> str:
        """The session's latest run that asked a model, empty where none did."""
        row = await self._engine.read(lambda tx: tx.row(LAST_RUN, session))
        return str(row[0]) if row else ""

    async def latest(self, scope: Scope, day: str, count: int) -> list[tuple[str, ...]]:
        """The keys of the most recent runs or jobs, the newest first, or of the persons of a day."""
        return await self._engine.read(
            lambda tx: tx.rows(LATEST[scope], count, *([day] if scope is Scope.PRINCIPAL else []))
        )


async def _warn(tx: Transaction, found: Sequence[Account]) -> AsyncIterator[str]:
    """The sentence of each limit that is nearly used up and of which nobody was told."""
    for account in found:
        for unit in account.untold():
            await accounts.note_told(tx, account, unit)
            yield warning(account.standing, unit)
