"""What was used and what may still be: the same words and figures for the command line and the slash commands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.model import Usage
from hermes_agent.core.spending import NANO, Limit, Rules, Scope, Standing, Unit, amount, day_of
from hermes_agent.store.accounts import Owner
from hermes_agent.store.database import Store
from hermes_agent.store.usage import Total

SHOWN = 5
"""Of runs and jobs the latest are shown, of persons the first."""
MOST_PERSONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitLine:
    """Where one limit stands for one run, job, person or day. Figures are US dollars or tokens, as `setting` says;
    `used`, `reserved` and `left` are None where nothing is counted (a limit of one call). `unpriced` calls are in no
    sum of money. `text` has the four figures in words."""

    setting: str
    whose: str
    most: float
    used: float | None
    reserved: float | None
    left: float | None
    unpriced: int
    text: tuple[str, str, str, str]


async def limit_lines(store: Store, rules: Rules, at: float, owner: Owner | None = None) -> list[LimitLine]:
    """The limits in force and where they stand: those of one owner, or today's and those of the latest runs and
    jobs."""
    lines = []
    for limit in rules.limits:
        async for keys in _counted(store, limit, at, owner):
            standing = Standing(limit=limit, spent=await store.usage.spent(limit.scope, keys))
            unpriced = await store.usage.unpriced(limit.scope, keys)
            lines += [_line(standing, unit, keys, unpriced) for unit in Unit if standing.most(unit) is not None]
    return lines


async def _counted(store: Store, limit: Limit, at: float, owner: Owner | None) -> AsyncIterator[tuple[str, ...]]:
    """The keys of what is shown of a limit."""
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
    left = standing.left(unit) or 0
    figures = (most, used, reserved, left)
    unknown = unpriced if unit is Unit.MONEY else 0
    shown = [amount(unit, figure) if counted or place == 0 else "-" for place, figure in enumerate(figures)]
    if unknown:
        shown[1] += f" + {unknown} of unknown price"
    scale = NANO if unit is Unit.MONEY else 1
    return LimitLine(
        setting=standing.setting(unit),
        whose=keys[-1] if keys else "each call",
        most=most / scale,
        used=used / scale if counted else None,
        reserved=reserved / scale if counted else None,
        left=left / scale if counted else None,
        unpriced=unknown,
        text=(shown[0], shown[1], shown[2], shown[3]),
    )


def dollars(total: Total) -> str:
    """The known money, and in words how many calls it does not cover."""
    unknown = []
    if total.unpriced:
        unknown.append(f"{total.unpriced} of unknown price")
    if total.open:
        reserved = f", at most {total.reserved:.4f}" if total.reserved else ""
        unknown.append(f"{total.open} unfinished{reserved}")
    if not unknown:
        return f"{total.cost:.4f}"
    all_unknown = total.unpriced + total.open == total.calls
    return " + ".join([*([] if all_unknown else [f"{total.cost:.4f}"]), *unknown])


def cached_share(usage: Usage) -> str:
    """How much of what was sent came out of the provider's cache, in percent."""
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
