"""Operations on costs: usage totals, limits and what is left of them, and prompt cache misses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from hermes_agent.app.operations.access import Access, HomeSystem
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Usage
from hermes_agent.core.spending import NANO, Limit, Scope, Standing, Unit, amount, day_of
from hermes_agent.store.accounts import Owner
from hermes_agent.store.usage import LAST_TIME as LAST_TIME, GroupBy as GroupBy, Total as Total

if TYPE_CHECKING:
    from hermes_agent.app.operations.sessions import SessionRecord
    from hermes_agent.store.breaks import Break as Break
    from hermes_agent.store.database import Store

SHOWN = 5
"""Of runs and jobs the latest are shown, of persons the first."""
MOST_PERSONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitLine:
    """State of one spending limit, for one run, job, person or day. Amounts are US dollars or tokens, as `setting`
    says; `used`, `reserved` and `left` are None if nothing is counted (a limit of one call). Calls in `unpriced` are in
    no sum of money."""

    setting: str
    of: str
    most: float
    used: float | None
    reserved: float | None
    left: float | None
    unpriced: int

    @property
    def text(self) -> tuple[str, str, str, str]:
        """The four amounts as text."""
        most, used, reserved, left = map(self._amount, (self.most, self.used, self.reserved, self.left))
        return most, used + (f" (price unknown for {self.unpriced})" if self.unpriced else ""), reserved, left

    def _amount(self, figure: float | None) -> str:
        unit = Unit(self.setting.rpartition(".")[2])
        return "-" if figure is None else amount(unit, round(figure * (NANO if unit is Unit.MONEY else 1)))


async def usage_totals(
    access: Access[HomeSystem], by: GroupBy, since: float = 0.0, until: float = LAST_TIME
) -> list[Total]:
    """Everybody's usage in a time range. Owner only."""
    access.check_owner("Only the owner sees what everybody used.")
    return await access.system.store.usage.totals(by, since, until)


async def session_totals(access: Access[HomeSystem], session: str) -> list[Total]:
    """A session's usage by model; with several models also the sum."""
    totals = await access.system.store.usage.totals(GroupBy.MODEL, session=session)
    return [*totals, together(totals)] if len(totals) > 1 else totals


async def list_limits(access: Access[HomeSystem], record: SessionRecord | None = None) -> list[LimitLine]:
    """The limits in force and their state: those of a session, or, for the owner, today's and those of the latest
    runs and jobs."""
    store, at, owner = access.system.store, access.system.clock.now(), None
    if record is None:
        access.check_owner("Only the owner sees where everybody's limits stand.")
    else:
        run = await store.usage.last_run(record.id)
        owner = Owner(session=record.id, run=run, job=record.job, principal=record.principal, day=day_of(at))
    lines = []
    for limit in access.system.settings.rules.limits:
        async for keys in _counted(store, limit, at, owner):
            standing = Standing(limit=limit, spent=await store.usage.spent(limit.scope, keys))
            unpriced = await store.usage.unpriced(limit.scope, keys)
            lines += [_line(standing, unit, keys, unpriced) for unit in Unit if standing.most(unit) is not None]
    return lines


async def cache_breaks(access: Access[HomeSystem], since: float) -> list[Break]:
    """Requests that missed the provider's prompt cache, with what changed in their prefix. Owner only."""
    access.check_owner("Only the owner sees everybody's requests.")
    return await access.system.store.breaks.since(since)


async def _counted(store: Store, limit: Limit, at: float, owner: Owner | None) -> AsyncIterator[tuple[str, ...]]:
    """The counter keys to show for a limit."""
    scope = limit.scope
    if scope is Scope.CALL:
        yield ()
    elif scope is Scope.PURPOSE:
        yield (day_of(at), limit.purpose)
    elif owner is not None:
        if keys := owner.keys(scope):
            yield keys
    elif scope is Scope.DAY:
        yield (day_of(at),)
    else:
        for keys in await store.usage.latest(scope, day_of(at), MOST_PERSONS if scope is Scope.PRINCIPAL else SHOWN):
            yield keys


def _line(standing: Standing, unit: Unit, keys: Sequence[str], unpriced: int) -> LimitLine:
    most, counted = standing.most(unit) or 0, standing.limit.scope is not Scope.CALL
    used, reserved = standing.spent.of(unit)
    left, scale = standing.left(unit) or 0, NANO if unit is Unit.MONEY else 1
    return LimitLine(
        setting=standing.setting(unit),
        of=keys[-1] if keys else "each call",
        most=most / scale,
        used=used / scale if counted else None,
        reserved=reserved / scale if counted else None,
        left=left / scale if counted else None,
        unpriced=unpriced if unit is Unit.MONEY else 0,
    )


def dollars(total: Total) -> str:
    """The known cost, and how many calls have no known price."""
    unknown = []
    if total.unpriced:
        unknown.append(f"price unknown for {total.unpriced}")
    if total.open:
        reserved = f", at most {total.reserved:.4f}" if total.reserved else ""
        unknown.append(f"{total.open} unfinished{reserved}")
    if not unknown:
        return f"{total.cost:.4f}"
    all_unknown = total.unpriced + total.open == total.calls
    return ", ".join([*([] if all_unknown else [f"{total.cost:.4f}"]), *unknown])


def cached_share(usage: Usage) -> str:
    """Share of input tokens read from the provider's cache, in percent."""
    return f"{100 * usage.cached / usage.input:.0f} %" if usage.input else "-"


def together(totals: Sequence[Total]) -> Total:
    """The sum of totals."""
    usages = [total.usage for total in totals]
    return Total(
        key="all",
        calls=sum(total.calls for total in totals),
        usage=Usage(
            input=sum(usage.input for usage in usages),
            output=sum(usage.output for usage in usages),
            cached=sum(usage.cached for usage in usages),
            cache_write=sum(usage.cache_write for usage in usages),
            reasoning=sum(usage.reasoning for usage in usages),
            known=all(usage.known for usage in usages),
        ),
        cost=sum(total.cost for total in totals),
        reserved=sum(total.reserved for total in totals),
        open=sum(total.open for total in totals),
        uncounted=sum(total.uncounted for total in totals),
        unpriced=sum(total.unpriced for total in totals),
    )
