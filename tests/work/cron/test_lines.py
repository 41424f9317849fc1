"""Cron lines where clocks change by half an hour."""

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from hermes_agent.work.cron.lines import Line

HOWE = ZoneInfo("Australia/Lord_Howe")


@pytest.mark.parametrize(
    ("line", "first", "times"),
    [
        ("*/20 5 * * *", "2020-04-04T13:00", ["05 05:00", "05 05:20", "05 05:40", "06 05:00"]),
        ("*/30 1-2 * * *", "2020-04-04T13:45", ["05 01:00", "05 01:30", "05 01:30", "05 02:00", "05 02:30"]),
        ("*/30 1-3 * * *", "2020-10-03T14:45", ["04 01:30", "04 02:30", "04 03:00", "04 03:30"]),
    ],
)
def test_hours_stay_right_where_the_clock_changes_by_half_an_hour(line: str, first: str, times: list[str]):
    start = datetime.fromisoformat(first).replace(tzinfo=UTC).astimezone(HOWE)
    found = islice(Line(line, start), len(times))
    assert [f"{each:%d %H:%M}" for each in found] == times
