"""Subcommand `hermes cost`: usage, cost, limits and cache misses; an unknown price is not shown as zero."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from hermes_agent.app.operations import costs
from hermes_agent.app.operations.costs import LAST_TIME, GroupBy, LimitLine, Total, cached_share, dollars, together
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import columns, show, table
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.time_format import Since
from hermes_agent.core.clock import moment

HEADS = ("CALLS", "INPUT", "CACHED", "SHARE", "OUTPUT", "US DOLLARS")
LIMIT_HEADS = ("LIMIT", "OF", "MOST", "USED", "RESERVED", "LEFT")
BREAKS = columns(
    (4, 5),
    AT=lambda each: moment(each.at),
    SESSION="session",
    PURPOSE="purpose",
    MODEL="model",
    EXPECTED="expected",
    CACHED="cached",
    CHANGED="changed",
)
NO_LIMIT = "No limit of money or tokens is set. `hermes config set budget.day.money 5` sets one."


@click.command(short_help="Show used tokens and their cost.")
@click.option(
    "--by",
    default="day",
    show_default=True,
    type=click.Choice([group.value for group in GroupBy]),
    help="One line per.",
)
@click.option("--since", default=0.0, type=Since(), metavar="WHEN", help="From then on: 24h, 7d, 2w, or a date.")
@click.option("--until", default=LAST_TIME, type=Since(), metavar="WHEN", help="Before then.")
@click.option(
    "--limits",
    "view",
    flag_value="limits",
    help="Show the limits that are set (section budget), and what is left.",
)
@click.option("--breaks", "view", flag_value="breaks", help="Show requests that missed the provider's cache, and why.")
@pass_surface
def cost(surface: Surface, by: str, since: float, until: float, *, view: str | None) -> None:
    """Show tokens and US dollars, as the providers counted them.

    CACHED tokens are part of INPUT, SHARE is how much of it they are. A day is one of this machine's calendar. With
    --limits: of runs and jobs the latest, of persons those of today.
    """
    if view == "limits":
        nothing = "" if surface.loaded.value.rules.limits else NO_LIMIT
        show(ask(surface, costs.list_limits), _limits, nothing=nothing)
    elif view == "breaks":
        found = ask(surface, partial(costs.cache_breaks, since=since))
        show(found, BREAKS, nothing="No cache was broken in that time.")
    else:
        totals = ask(surface, partial(costs.usage_totals, by=GroupBy(by), since=since, until=until))
        show(totals, partial(_totals, by), nothing="No model was asked in that time.")


def _limits(lines: Sequence[LimitLine]) -> str:
    return table([(line.setting, line.of, *line.text) for line in lines], LIMIT_HEADS, right=(2, 3, 4, 5))


def _totals(by: str, totals: Sequence[Total]) -> str:
    rows = [_row(total.key or "-", total) for total in totals]
    rows += [_row("all", together(totals))] if len(totals) > 1 else []
    return table(rows, (by.upper(), *HEADS), right=(1, 2, 3, 4, 5))


def _row(key: str, total: Total) -> tuple[str, ...]:
    usage = total.usage
    more = "" if usage.known else "+"
    read = (f"{usage.input:,}{more}", f"{usage.cached:,}{more}", cached_share(usage))
    return (key, f"{total.calls:,}", *read, f"{usage.output:,}{more}", dollars(total))
