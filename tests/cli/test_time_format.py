"""Times."""

from __future__ import annotations

from hermes_agent.cli.time_format import Since
from hermes_agent.core.clock import SystemClock, moment


def test_a_span_is_counted_back_from_now() -> None:
    since = Since().convert("2d", None, None)

    assert abs(SystemClock().now() - 2 * 86_400 - since) < 60


def test_a_date_is_its_beginning_on_this_machine_s_clock() -> None:
    assert moment(Since().convert("2026-11-21", None, None)) == "2026-11-21 00:00"
