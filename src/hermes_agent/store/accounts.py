"""Spending accounts: running sums of money and tokens per run, job, person, day and purpose, so that all processes
share each limit.

An account sums rows of `usage`. The first call that checks a limit creates it from the rows; from then on every
call of every process is added, whatever limits that process has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.spending import Limit, Scope, Spent, Standing, Unit, nanos
from hermes_agent.store.transaction import Columns, Dialect, Row, Transaction, marks

KEPT_SECONDS = 40 * 86_400.0
"""An account that is older is made anew from the rows, should it ever be asked about again."""

FIELDS = "id, money, tokens, held_money, held_tokens, told_money, told_tokens"
READ = "SELECT " + FIELDS + " FROM account WHERE home = $home AND id IN ({ids}) ORDER BY id FOR NO KEY UPDATE"
# A row that another transaction has not committed would be in no sum: whoever writes one is waited for.
ALONE = "LOCK TABLE usage IN SHARE ROW EXCLUSIVE MODE"
# The same rounding as `core.spending.nanos`.
NANOS = "CAST(coalesce(sum(CASE WHEN {which} THEN ceil(coalesce({value}, 0) * 1000000000 - 0.001) END), 0) AS bigint)"
TOKENS = "CAST(coalesce(sum(CASE WHEN {which} THEN {value} END), 0) AS bigint)"
SUMS = ", ".join(
    (
        NANOS.format(which="outcome <> ''", value="coalesce(cost, reserved)"),
        TOKENS.format(
            which="outcome <> ''", value="(CASE WHEN known = 1 THEN input + output ELSE reserved_tokens END)"
        ),
        NANOS.format(which="outcome = ''", value="reserved"),
        TOKENS.format(which="outcome = ''", value="reserved_tokens"),
    )
)
UNPRICED = "reserved IS NULL AND cost IS NULL"
ROWS_OF = {
    Scope.RUN: "session = $1 AND run = $2",
    Scope.JOB: "home = $home AND job = $1",
    Scope.PRINCIPAL: "home = $home AND day = $1 AND principal = $2",
    Scope.DAY: "home = $home AND day = $1",
    Scope.PURPOSE: "home = $home AND day = $1 AND purpose = $2",
}
MAKE = (
    "INSERT INTO account (home, id, at, money, tokens, held_money, held_tokens) "
    "VALUES ($home, $1, $2, $3, $4, $5, $6) ON CONFLICT (home, id) DO NOTHING"
)
FORGET = "DELETE FROM account WHERE home = $home AND at < $1"
HOLD = (
    "UPDATE account SET held_money = held_money + $1, held_tokens = held_tokens + $2 WHERE home = $home AND id IN "
    "($3, $4, $5, $6, $7)"
)
SETTLE = (
    "UPDATE account SET money = money + $1, tokens = tokens + $2, held_money = held_money - $3, "
    "held_tokens = held_tokens - $4 WHERE home = $home AND id IN ($5, $6, $7, $8, $9)"
)
TOLD = {
    Unit.MONEY: "UPDATE account SET told_money = $2 WHERE home = $home AND id = $1",
    Unit.TOKENS: "UPDATE account SET told_tokens = $2 WHERE home = $home AND id = $1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The accounts that a call is charged to; a field is empty where the call has no run, job or purpose. `day` is
    the owner's calendar day."""

    session: str
    run: str
    job: str
    principal: str
    day: str
    purpose: str = ""

    def keys(self, scope: Scope) -> tuple[str, ...]:
        """The key columns that select the rows of that scope, empty where there are none."""
        match scope:
            case Scope.RUN:
                return (self.session, self.run) if self.run else ()
            case Scope.JOB:
                return (self.job,) if self.job else ()
            case Scope.PRINCIPAL:
                return (self.day, self.principal)
            case Scope.DAY:
                return (self.day,)
            case Scope.PURPOSE:
                return (self.day, self.purpose) if self.purpose else ()
            case _:
                return ()

    def account(self, scope: Scope) -> str:
        """The account's id, empty where there is none."""
        keys = self.keys(scope)
        return " ".join((scope, *keys)) if keys else ""

    @property
    def accounts(self) -> tuple[str, ...]:
        """The ids of all accounts that a call is charged to: run, job, principal, day, purpose."""
        return tuple(self.account(scope) for scope in ROWS_OF)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account with its limit and amount used, and for which limits the person was warned (`told`); `id` is empty
    for the limit of a single call."""

    id: str
    standing: Standing
    told: tuple[int, int] = (-1, -1)

    def untold(self) -> list[Unit]:
        """The units whose limit is nearly used up and that the person was not warned of; never for a purpose, whose
        limit ends no run."""
        if not self.id or self.standing.limit.scope is Scope.PURPOSE:
            return []
        told = dict(zip(Unit, self.told, strict=True))
        return [unit for unit in Unit if self.standing.warns(unit) and told[unit] != self.standing.most(unit)]


spent_of = Columns(Spent, "money, tokens, held_money, held_tokens")


async def accounts(tx: Transaction, owner: Owner, limits: Sequence[Limit], at: float) -> list[Account]:
    """The accounts of these limits, locked until the transaction ends. Limits that do not apply to the owner are
    left out, except that of the call itself."""
    held = [limit for limit in limits if not limit.purpose or limit.purpose == owner.purpose]
    wanted = {owner.account(limit.scope): limit for limit in held if owner.keys(limit.scope)}
    found = await _read(tx, sorted(wanted)) if wanted else {}
    if wanted.keys() - found.keys():
        found = await _complete(tx, owner, wanted, at)
    call = [Account(id="", standing=Standing(limit=limit)) for limit in limits if limit.scope is Scope.CALL]
    return call + [_account(found[id_], limit) for id_, limit in wanted.items()]


async def spent(tx: Transaction, scope: Scope, keys: Sequence[str]) -> Spent:
    """The sum of the ledger rows."""
    row = await tx.row(f"SELECT {SUMS} FROM usage WHERE {ROWS_OF[scope]}", *keys)
    assert row is not None  # sums have a row
    return spent_of(row)


async def unpriced(tx: Transaction, scope: Scope, keys: Sequence[str]) -> int:
    """The number of calls with unknown price, which no sum of money includes."""
    row = await tx.row(f"SELECT count(*) FROM usage WHERE {ROWS_OF[scope]} AND {UNPRICED}", *keys)
    return int(row[0]) if row else 0


async def hold(tx: Transaction, owner: Owner, reserved: float | None, tokens: int) -> None:
    """Reserve money and tokens for a call."""
    await tx.run(HOLD, nanos(reserved or 0.0), tokens, *owner.accounts)


async def complete(tx: Transaction, owner: Owner, held: tuple[int, int], used: tuple[int, int]) -> None:
    """Replace the reservation of a call by its actual use, both in nanodollars and tokens."""
    await tx.run(SETTLE, *used, *held, *owner.accounts)


async def note_told(tx: Transaction, account: Account, unit: Unit) -> None:
    """Record that the person was warned of this limit."""
    await tx.run(TOLD[unit], account.id, account.standing.most(unit))


async def _read(tx: Transaction, ids: Sequence[str]) -> dict[str, Row]:
    rows = await tx.rows(READ.format(ids=marks(len(ids), 1)), *ids)
    return {row[0]: row for row in rows}


async def _complete(tx: Transaction, owner: Owner, wanted: Mapping[str, Limit], at: float) -> dict[str, Row]:
    """Make the accounts that are missing, out of the rows, and read them all."""
    await tx.run(FORGET, at - KEPT_SECONDS)
    found = await _read(tx, sorted(wanted))
    missing = sorted(wanted.keys() - found.keys())
    # The rows of a run are written under its session's lease alone.
    if tx.dialect is Dialect.POSTGRES and any(wanted[id_].scope is not Scope.RUN for id_ in missing):
        await tx.run(ALONE)
    for id_ in missing:
        scope = wanted[id_].scope
        sums = await spent(tx, scope, owner.keys(scope))
        await tx.run(MAKE, id_, at, sums.money, sums.tokens, sums.held_money, sums.held_tokens)
    return await _read(tx, sorted(wanted))


def _account(row: Row, limit: Limit) -> Account:
    return Account(id=row[0], standing=Standing(limit=limit, spent=spent_of(row[1:5])), told=(row[5], row[6]))
