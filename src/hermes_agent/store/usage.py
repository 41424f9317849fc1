"""The usage ledger: one row per model call, opened before the request is sent and settled with what the provider
counted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hermes_agent.core.model import Usage
from hermes_agent.store.bodies import storable
from hermes_agent.store.transaction import Dialect, Engine, Row, Transaction

FIELDS = (
    "call_id, session, run, turn, purpose, provider, model, prefix, messages, reserved, at, principal, credential, "
    "shape, outcome, seconds, known, input, output, cached, cache_write, reasoning, cost"
)
OPEN = (
    f"INSERT INTO usage ({FIELDS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, "
    "'', NULL, 0, 0, 0, 0, 0, 0, NULL) ON CONFLICT (call_id) DO NOTHING"
)
SETTLE = (
    "UPDATE usage SET outcome = $2, seconds = $3, known = $4, input = $5, output = $6, cached = $7, cache_write = $8, "
    "reasoning = $9, cost = $10 WHERE call_id = $1"
)
ROWS = f"SELECT {FIELDS} FROM usage WHERE session = $1 ORDER BY at, call_id"
USES = """
SELECT credential, count(*), max(at) FROM usage
WHERE at >= $1 AND provider = $2 AND credential <> ''
GROUP BY credential
"""
TOTALS = """
SELECT {group}, count(*), CAST(sum(input) AS bigint), CAST(sum(output) AS bigint), CAST(sum(cached) AS bigint),
    CAST(sum(cache_write) AS bigint), CAST(sum(reasoning) AS bigint), coalesce(sum(cost), 0.0),
    coalesce(sum(CASE WHEN outcome = '' THEN reserved END), 0.0),
    count(CASE WHEN outcome = '' THEN 1 END), count(CASE WHEN outcome <> '' AND known = 0 THEN 1 END),
    count(CASE WHEN outcome <> '' AND cost IS NULL THEN 1 END)
FROM usage WHERE at >= $1 AND (CAST($2 AS TEXT) = '' OR session = $2)
GROUP BY 1 ORDER BY 1
"""
DAY = {
    Dialect.SQLITE: "strftime('%Y-%m-%d', at, 'unixepoch')",
    Dialect.POSTGRES: "to_char(to_timestamp(at) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
}
UNKNOWN = Usage(known=False)


class GroupBy(StrEnum):
    """What a total is made over; a day is one of UTC."""

    DAY = "day"
    SESSION = "session"
    PURPOSE = "purpose"
    MODEL = "model"
    PROVIDER = "provider"
    PRINCIPAL = "principal"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """One call. `reserved` and `cost` are US dollars, None where the price is unknown; `messages` is how many
    followed the prefix; `credential` is the name of the key, `shape` what the provider could keep of the question;
    `outcome` is "" until the call is settled and stays so when its process died."""

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
    reserved: float | None = None
    outcome: str = ""
    seconds: float | None = None
    usage: Usage = UNKNOWN
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Sums over the calls of one `key`.

    `cost` sums the known prices only: `unpriced` says how many settled calls have none, `uncounted` of how many the
    provider told no tokens, and `open` how many are not settled; `reserved` is the money that those may cost.
    """

    key: str
    calls: int
    usage: Usage
    cost: float
    reserved: float
    open: int
    uncounted: int
    unpriced: int


class Ledger:
    """Rows are opened once and settled once; they outlive their session."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def open(self, row: UsageRow, tx: Transaction | None = None) -> None:
        """Commit the row of a call that is about to be made (within `tx` where one is given)."""
        whose = (row.call_id, row.session, row.run, row.turn, row.purpose)
        route = (row.provider, row.model, row.prefix, row.messages, row.reserved, row.at, row.principal)
        what = (row.credential, row.shape)

        async def change(tx: Transaction) -> None:
            await tx.run(OPEN, *whose, *route, *what)

        await (self._engine.write(change) if tx is None else change(tx))

    async def settle(
        self,
        call_id: str,
        usage: Usage,
        cost: float | None,
        outcome: str,
        seconds: float,
        tx: Transaction | None = None,
    ) -> None:
        """Enter what the call used (within `tx` where one is given); `outcome` is "answered" or the error's class."""
        counts = (usage.input, usage.output, usage.cached, usage.cache_write, usage.reasoning)

        async def change(tx: Transaction) -> None:
            await tx.run(SETTLE, call_id, storable(outcome), seconds, int(usage.known), *counts, cost)

        await (self._engine.write(change) if tx is None else change(tx))

    async def totals(self, by: GroupBy, since: float = 0.0, session: str = "") -> list[Total]:
        """Sums over the calls since that time (of one session, where it is named), ordered by key."""

        async def query(tx: Transaction) -> list[Row]:
            group = DAY[tx.dialect] if by is GroupBy.DAY else by.value
            return await tx.rows(TOTALS.format(group=group), since, session)

        return [_total(row) for row in await self._engine.read(query)]

    async def rows(self, session: str) -> list[UsageRow]:
        """The calls of a session, oldest first."""

        async def query(tx: Transaction) -> list[Row]:
            return await tx.rows(ROWS, session)

        return [_row(row) for row in await self._engine.read(query)]

    async def uses(self, provider: str, since: float) -> dict[str, tuple[int, float]]:
        """How often each of the provider's credentials was used since then, and when last, by name."""

        async def query(tx: Transaction) -> list[Row]:
            return await tx.rows(USES, since, provider)

        return {name: (calls, last) for name, calls, last in await self._engine.read(query)}


def _total(row: Row) -> Total:
    (
        key,
        calls,
        tokens_in,
        tokens_out,
        cached,
        cache_write,
        reasoning,
        cost,
        reserved,
        unsettled,
        uncounted,
        unpriced,
    ) = row
    return Total(
        key=key,
        calls=calls,
        usage=_usage((tokens_in, tokens_out, cached, cache_write, reasoning), known=not (unsettled or uncounted)),
        cost=cost,
        reserved=reserved,
        open=unsettled,
        uncounted=uncounted,
        unpriced=unpriced,
    )


def _usage(counts: Row, *, known: bool) -> Usage:
    tokens_in, tokens_out, cached, cache_write, reasoning = counts
    return Usage(
        input=tokens_in, output=tokens_out, cached=cached, cache_write=cache_write, reasoning=reasoning, known=known
    )


def _row(row: Row) -> UsageRow:
    return UsageRow(
        call_id=row[0],
        session=row[1],
        run=row[2],
        turn=row[3],
        purpose=row[4],
        provider=row[5],
        model=row[6],
        prefix=row[7],
        messages=row[8],
        reserved=row[9],
        at=row[10],
        principal=row[11],
        credential=row[12],
        shape=row[13],
        outcome=row[14],
        seconds=row[15],
        usage=_usage(row[17:22], known=bool(row[16])),
        cost=row[22],
    )
