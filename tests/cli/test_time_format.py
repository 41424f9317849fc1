"""Times."""

from __future__ import annotations

import pytest

from hermes_agent.cli.time_format import Since
from hermes_agent.core.clock import SystemClock, moment


@pytest.mark.parametrize(("span", "seconds"), [("30s", 30), ("10m", 600), ("2h", 7_200), ("2d", 172_800)])
def test_a_span_is_counted_back_from_now(span: str, seconds: int) -> None:
    since = Since().convert(span, None, None)

    assert abs(SystemClock().now() - seconds - since) < 20


def test_a_date_has_a_time_or_none() -> None:
    assert Since().convert("2026-05-01T12:00Z", None, None) == 1_777_636_800.0


def test_a_date_is_its_beginning_on_this_machine_s_clock() -> None:
    assert moment(Since().convert("2026-11-21", None, None)) == "2026-11-21 00:00"
