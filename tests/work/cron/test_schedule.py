"""What people write as a schedule, and the instants that follow from it."""

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from hermes_agent.store.work.cron.records import Kind, Schedule
from hermes_agent.work.cron.schedule import BadSchedule, instants, local, parse, span_words, upcoming, window_of, words

NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC).timestamp()
BERLIN = ZoneInfo("Europe/Berlin")


def line(spec: str, zone: str = "Europe/Berlin") -> Schedule:
    return Schedule(kind=Kind.CRON, spec=spec, zone=zone)


def during(schedule: Schedule, first: datetime, last: datetime) -> list[str]:
    zone = ZoneInfo(schedule.zone)
    found = instants(schedule, int(first.timestamp()), int(last.timestamp()))
    return [f"{datetime.fromtimestamp(due, zone):%d %H:%M %Z}" for due in found]


@pytest.mark.parametrize(
    ("said", "kind", "spec"),
    [
        ("0 9 * * mon-fri", Kind.CRON, "0 9 * * MON-FRI"),
        ("@daily", Kind.CRON, "0 0 * * *"),
        ("@Hourly", Kind.CRON, "0 * * * *"),
        ("every 90m", Kind.EVERY, "5400"),
        ("every hour", Kind.EVERY, "3600"),
        ("every 1h 30m", Kind.EVERY, "5400"),
        ("every 1d at 09:00", Kind.CRON, "0 9 * * *"),
        ("every day at 9:05", Kind.CRON, "5 9 * * *"),
        ("every weekday at 18:30", Kind.CRON, "30 18 * * 1-5"),
        ("every monday at 07:00", Kind.CRON, "0 7 * * 1"),
        ("30m", Kind.AT, str(int(NOW) + 1800)),
        ("in 20m", Kind.AT, str(int(NOW) + 1200)),
        ("2026-12-24T18:00", Kind.AT, str(int(datetime(2026, 12, 24, 17, tzinfo=UTC).timestamp()))),
        ("2026-12-24 18:00Z", Kind.AT, str(int(datetime(2026, 12, 24, 18, tzinfo=UTC).timestamp()))),
        ("0 0 L * *", Kind.CRON, "0 0 L * *"),
        ("0 0 LW * *", Kind.CRON, "0 0 LW * *"),
        ("0 0 * * 5L", Kind.CRON, "0 0 * * 5L"),
        ("0 0 * * MON#1", Kind.CRON, "0 0 * * MON#1"),
    ],
)
def test_each_way_to_say_a_schedule_is_understood(said: str, kind: Kind, spec: str):
    found = parse(said, "Europe/Berlin", NOW)
    assert (found.kind, found.spec) == (kind, spec)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("0 0 9 * * *", "6 fields .*seconds"),
        ("0 9 * * * 2027", "6 fields"),
        ("60 * * * *", "the minute is wrong"),
        ("0 24 * * *", "the hour is wrong"),
        ("* * 30 2 *", "the day of the month is wrong"),
        ("*/0 * * * *", "the minute is wrong"),
        ("0 0 15W * *", "nearest weekday .*LW"),
        ("0 0 ? * MON", r"write `\*` instead of `\?`: `0 0 \* \* MON`"),
        ("@fortnightly", "There is no `@fortnightly`. There are: @hourly"),
        ("every 10s", "the least interval is 60 s"),
        ("every blue moon", "no interval"),
        ("every 5000000w", "more than 100 years"),
        ("every 99999999999999w", "more than 100 years"),
        ("in 99999999999999d", "at most 100 years ahead"),
        ("9999-12-31T23:59", "at most 100 years ahead"),
        ("0001-01-01T00:00+14:00", "in the past by"),
        ("every day at 25:00", "no time of a day"),
        ("2026-11-27T10:00", "in the past by 3 h"),
        ("soon", "Say five cron fields"),
        ("", "no schedule"),
        ("9" * 300, "no schedule"),
        ("0 9 * * " + "1," * 60 + "x", "the day of the week is wrong"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_way_to_say_it(said: str, why: str):
    with pytest.raises(BadSchedule, match=why):
        parse(said, "Europe/Berlin", NOW)


def test_an_unknown_zone_is_refused_with_the_nearest_one():
    with pytest.raises(BadSchedule, match=r"Did you mean `Europe/Berlin`\?"):
        parse("@daily", "Europe/Berln", NOW)
    with pytest.raises(BadSchedule, match="Say one such as"):
        parse("@daily", "../../etc/passwd", NOW)


def test_a_local_time_that_comes_twice_is_the_earlier_one_and_said():
    found = parse("2027-10-31T02:30", "Europe/Berlin", NOW)
    assert "earlier" in found.note
    assert local(int(found.spec), "Europe/Berlin") == "Sun 2027-10-31 02:30 CEST"


def test_a_local_time_that_does_not_exist_is_moved_and_said():
    found = parse("2027-03-28T02:30", "Europe/Berlin", NOW)
    assert "does not exist" in found.note
    assert local(int(found.spec), "Europe/Berlin") == "Sun 2027-03-28 03:30 CEST"


def test_a_fixed_time_comes_once_in_the_night_that_has_an_hour_twice():
    night = datetime(2026, 10, 25, tzinfo=BERLIN), datetime(2026, 10, 25, 23, tzinfo=BERLIN)
    assert during(line("30 2 * * *"), *night) == ["25 02:30 CEST"]
    assert during(line("0 2-3 * * *"), *night) == ["25 02:00 CEST", "25 03:00 CET"]


def test_a_fixed_time_that_the_clock_leaves_out_comes_at_the_first_moment_after():
    night = datetime(2026, 3, 29, tzinfo=BERLIN), datetime(2026, 3, 29, 23, tzinfo=BERLIN)
    assert during(line("30 2 * * *"), *night) == ["29 03:00 CEST"]
    assert during(line("0 2-3 * * *"), *night) == ["29 03:00 CEST"]


def test_a_line_with_a_star_runs_through_both_nights():
    autumn = datetime(2026, 10, 25, 0, 59, tzinfo=BERLIN), datetime(2026, 10, 25, 4, tzinfo=BERLIN)
    assert len(during(line("*/30 * * * *"), *autumn)) == 9
    spring = datetime(2026, 3, 29, 0, 59, tzinfo=BERLIN), datetime(2026, 3, 29, 4, tzinfo=BERLIN)
    assert len(during(line("*/30 * * * *"), *spring)) == 5


def test_a_day_that_is_not_is_made_up_for_at_its_end():
    apia = ZoneInfo("Pacific/Apia")
    found = during(
        line("30 2 * * *", "Pacific/Apia"), datetime(2011, 12, 29, tzinfo=apia), datetime(2012, 1, 1, tzinfo=apia)
    )
    assert [each[:8] for each in found] == ["29 02:30", "31 00:00", "31 02:30"]


def test_an_interval_keeps_its_beat_from_its_creation_on():
    every = parse("every 90m", "Europe/Berlin", NOW)
    assert [due - int(NOW) for due in islice(instants(every, int(NOW)), 3)] == [5400, 10_800, 16_200]
    assert next(instants(every, int(NOW) + 100 * 5400 + 1)) == int(NOW) + 101 * 5400
    assert next(instants(every, int(NOW) - 10**6)) == int(NOW) + 5400


def test_a_window_is_half_the_gap_within_bounds():
    assert window_of(parse("every 60s", "UTC", NOW), NOW) == 120
    assert window_of(parse("every 1h", "UTC", NOW), NOW) == 1800
    assert window_of(parse("@yearly", "UTC", NOW), NOW) == 7200
    assert window_of(parse("in 5m", "UTC", NOW), NOW) == 86_400


def test_a_schedule_is_said_in_words_with_its_next_times():
    found = parse("0 9 * * 1-5", "Europe/Berlin", NOW)
    assert words(found) == "At 09:00 on Monday through Friday (Europe/Berlin)"
    assert upcoming(found, NOW) == ("Mon 2026-11-30 09:00 CET", "Tue 2026-12-01 09:00 CET", "Wed 2026-12-02 09:00 CET")
    assert words(parse("every 90m", "UTC", NOW)) == "Every 1 h 30 min, counted from Fri 2026-11-27 12:00 UTC"
    assert words(parse("in 20m", "UTC", NOW)) == "Once, at Fri 2026-11-27 12:20 UTC"
    assert (span_words(0), span_words(93_784)) == ("0 s", "1 d 2 h")
