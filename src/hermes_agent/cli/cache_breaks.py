"""`hermes cost --breaks`: requests whose beginning the provider read anew, and what in them had changed."""

from __future__ import annotations

from hermes_agent.cli.output import remark, say, say_json, table
from hermes_agent.cli.session_lookup import with_store
from hermes_agent.cli.surface import Surface
from hermes_agent.cli.time_format import moment


def show_breaks(surface: Surface, since: float, *, as_json: bool) -> None:
    """Print the cache breaks since then."""
    found = with_store(surface, lambda store: store.breaks.since(since))
    if as_json:
        say_json(found)
        return
    if not found:
        remark("No cache was broken in that time.")
        return
    rows = [
        (
            moment(each.at),
            each.session or "-",
            each.purpose,
            each.model,
            f"{each.expected:,}",
            f"{each.cached:,}",
            each.changed,
        )
        for each in found
    ]
    say(table(rows, ("AT", "SESSION", "PURPOSE", "MODEL", "EXPECTED", "CACHED", "CHANGED"), right=(4, 5)))
