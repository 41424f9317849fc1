"""Cron lines in every time zone over years: once a day for fixed times, no hole and no double for stars.

By default a few zones with odd clocks over two years; `--full`: all zones, ten years.
"""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from cronsim import CronSim

from hermes_agent.store.work.cron.records import Kind, Schedule
from hermes_agent.work.cron.schedule import instants

ODD = (
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Europe/Dublin",
    "Europe/Berlin",
    "Asia/Kathmandu",
    "UTC",
)
DAY, STARS = 86_400, 120
"""Seconds; days for which a line with a star is compared minute by minute."""


def line(chance: random.Random, *, fixed: bool) -> str:
    minute, hour = chance.randrange(60), chance.randrange(24)
    day = chance.choice(["*", "*", "*", "1", "15", "L"])
    month = chance.choice(["*", "*", "*", "3", "10-11"])
    weekday = chance.choice(["*", "*", "1-5", "SUN"]) if day == "*" else "*"
    when = (
        f"{minute} {hour}" if fixed else chance.choice(["* *", "*/15 *", "7 *", f"*/20 {hour}", f"30 */{hour % 6 + 1}"])
    )
    return f"{when} {day} {month} {weekday}"


def first_valid(day: date, at: time, zone: ZoneInfo) -> int:
    """The moment of a local time, or the first that exists after it, by going through the minutes."""
    local = datetime.combine(day, at)
    while True:
        found = local.replace(tzinfo=zone)
        if found.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == local:
            return int(found.timestamp())
        local += timedelta(minutes=1)


def days_that_match(spec: str, first: int, last: int, zone: ZoneInfo) -> set[int]:
    """The moments of a fixed line, by the local days of the plain calendar."""
    minute, hour, *rest = spec.split()
    start = datetime.fromtimestamp(first, zone).replace(tzinfo=None) - timedelta(days=2)
    every = CronSim(f"0 0 {' '.join(rest)}", start)
    found = set()
    for midnight in every:
        moment = first_valid(midnight.date(), time(int(hour), int(minute)), zone)
        if moment > last:
            return found
        if moment > first:
            found.add(moment)
    return found


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_lines_keep_their_promise_in_every_zone(full: bool):
    zones, years, lines = (sorted(available_timezones()), 10, 4) if full else (list(ODD), 2, 4)
    chance = random.Random(11)
    for name in zones:
        zone = ZoneInfo(name)
        begin = int(datetime(2011, 6, 1, tzinfo=UTC).timestamp()) + chance.randrange(DAY)
        for number in range(lines):
            fixed = number % 2 == 0
            spec, last = line(chance, fixed=fixed), begin + years * 365 * DAY
            first = begin if fixed else begin + chance.randrange((years * 365 - STARS) * DAY)
            last = last if fixed else first + STARS * DAY
            found = list(instants(Schedule(kind=Kind.CRON, spec=spec, zone=name), first, last))
            assert all(a < b for a, b in pairwise(found)), (name, spec)
            if fixed:
                assert set(found) == days_that_match(spec, first, last, zone), (name, spec)
            else:
                assert found == by_the_minute(spec, first, last, zone), (name, spec)
            if found:
                again = found[len(found) // 2]
                rest = list(instants(Schedule(kind=Kind.CRON, spec=spec, zone=name), again, last))
                assert rest == found[len(found) // 2 + 1 :], (name, spec)


def by_the_minute(spec: str, first: int, last: int, zone: ZoneInfo) -> list[int]:
    """The moments of a line with a star: each minute of UTC whose local time matches."""
    sim = CronSim(spec, datetime(2000, 1, 1))  # noqa: DTZ001  of its fields alone
    found = []
    for at in range(first - first % 60 + 60, last + 1, 60):
        local = datetime.fromtimestamp(at, zone)
        if (
            local.minute in sim.minutes
            and local.hour in sim.hours
            and local.month in sim.months
            and sim.match_day(local.date())
        ):
            found.append(at)
    return found
