"""`hermes cost`: what the models' providers were asked and what it cost; an unknown price is never shown as zero."""

from __future__ import annotations

import click

from hermes_agent.app.costs import LimitLine, cached_share, dollars, limit_lines, together
from hermes_agent.cli.cache_breaks import show_breaks
from hermes_agent.cli.output import remark, say, say_json, table
from hermes_agent.cli.session_lookup import with_store
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.time_format import Since
from hermes_agent.core.clock import SystemClock
from hermes_agent.store.usage import LAST_TIME, GroupBy, Total

HEADS = ("CALLS", "INPUT", "CACHED", "SHARE", "OUTPUT", "US DOLLARS")
LIMIT_HEADS = ("LIMIT", "OF", "MOST", "USED", "RESERVED", "LEFT")


@click.command(
    short_help="Show what was used and what it cost.",
    epilog="Examples: `hermes cost --by provider --since 7d`, `hermes cost --limits`.",
)
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
@click.option(
    "--breaks", "view", flag_value="breaks", help="Show the requests that the provider's cache did not help, and why."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def cost(surface: Surface, by: str, since: float, until: float, *, view: str | None, as_json: bool) -> None:
    """Show tokens and US dollars, as the providers counted them.

    CACHED tokens are part of INPUT, SHARE is how much of it they are. A day is one of this machine's calendar. With
    --limits: of runs and jobs the latest, of persons those of today.
    """
    if view == "limits":
        _show_limits(surface, as_json=as_json)
        return
    if view == "breaks":
        show_breaks(surface, since, as_json=as_json)
        return
    totals = with_store(surface, lambda store: store.usage.totals(GroupBy(by), since, until))
    if as_json:
        say_json(totals)
        return
    if not totals:
        remark("No model was asked in that time.")
        return
    rows = [_row(total.key or "-", total) for total in totals]
    if len(totals) > 1:
        rows.append(_row("all", together(totals)))
    say(table(rows, (by.upper(), *HEADS), right=(1, 2, 3, 4, 5)))


def _row(key: str, total: Total) -> tuple[str, ...]:
    usage = total.usage
    more = "" if usage.known else "+"
    read = (f"{usage.input:,}{more}", f"{usage.cached:,}{more}", cached_share(usage))
    return (key, f"{total.calls:,}", *read, f"{usage.output:,}{more}", dollars(total))


def _show_limits(surface: Surface, *, as_json: bool) -> None:
    rules = surface.loaded.value.rules
    lines = with_store(surface, lambda store: limit_lines(store, rules, SystemClock().now()))
    if as_json:
        say_json([_plain(line) for line in lines])
        return
    if not rules.limits:
        remark("No limit of money or tokens is set. `hermes config set budget.day.money 5` sets one.")
        return
    say(table([(line.setting, line.whose, *line.text) for line in lines], LIMIT_HEADS, right=(2, 3, 4, 5)))


def _plain(line: LimitLine) -> dict[str, str | float | None]:
    """A line without the words that the table has for it."""
    return {
        "setting": line.setting,
        "of": line.whose,
        "most": line.most,
        "used": line.used,
        "reserved": line.reserved,
        "left": line.left,
        "unpriced": line.unpriced,
    }
