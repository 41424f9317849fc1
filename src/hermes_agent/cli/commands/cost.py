"""`hermes cost`: what the models' providers were asked and what it cost; an unknown price is never shown as zero."""

from __future__ import annotations

from collections.abc import Sequence

import click

from hermes_agent.cli.moments import Since
from hermes_agent.cli.opened import with_store
from hermes_agent.cli.output import remark, say, say_json, table
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.model import Usage
from hermes_agent.store.usage import GroupBy, Total


@click.command(short_help="Show what was used and what it cost.")
@click.option(
    "--by",
    default="day",
    show_default=True,
    type=click.Choice([group.value for group in GroupBy]),
    help="One line per.",
)
@click.option("--since", default=0.0, type=Since(), metavar="WHEN", help="From then on: 24h, 7d, 2w, or a date.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def cost(surface: Surface, by: str, since: float, as_json: bool) -> None:
    """Show tokens and US dollars, as the providers counted them. Days are those of UTC."""
    totals = with_store(surface, lambda store: store.usage.totals(GroupBy(by), since))
    if as_json:
        say_json(totals)
        return
    if not totals:
        remark("No model was asked in that time.")
        return
    rows = [_row(total.key or "-", total) for total in totals]
    if len(totals) > 1:
        rows.append(_row("all", _sum(totals)))
    say(table(rows, (by.upper(), "CALLS", "INPUT", "CACHED", "OUTPUT", "US DOLLARS"), right=(1, 2, 3, 4)))


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


def _row(key: str, total: Total) -> tuple[str, ...]:
    usage = total.usage
    more = "" if usage.known else "+"
    tokens = (f"{usage.input:,}{more}", f"{usage.cached:,}{more}", f"{usage.output:,}{more}")
    return (key, f"{total.calls:,}", *tokens, dollars(total))


def _sum(totals: Sequence[Total]) -> Total:
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
