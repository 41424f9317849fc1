"""Schedules: parses what people write, computes their instants, and plans them as rows in advance. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import sha256
from itertools import islice
from zoneinfo import ZoneInfo, available_timezones

from hermes_agent.core.errors import HermesError
from hermes_agent.host.late import late, libraries
from hermes_agent.host.nearest import nearest_key
from hermes_agent.store.work.cron.records import CatchUp, Instant, InstantState, Job, Kind, Overlap, Planned, Schedule

LINE = "hermes_agent.work.cron.lines:Line"
ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)
LEAST = 60
"""Seconds of the shortest interval."""
FARTHEST = 100 * 366 * 86_400
"""Seconds of the longest interval, and how far ahead one time may be."""
LAST = 253_402_214_400.0
"""The last moment that any zone can write."""
LONGEST_SPEC = 200
MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
PART = r"\d+ *(?:s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)"
SPAN = re.compile(rf"{PART}(?: *{PART})*")
PIECE = re.compile(r"(\d+) *([a-z])")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
AT_TIME = re.compile(r"every (1 *d|1 *day|day|weekday|(?:sun|mon|tue|wed|thu|fri|sat)[a-z]*) at (\d{1,2}):(\d{2})")
FORMS = (
    "Say five cron fields (`0 9 * * 1-5`), `@daily`, `every 90m`, `every day at 09:00`, `in 20m`, or a time such as "
    "2026-12-24T18:00."
)
FIELDS = {
    "minute": "minute",
    "hour": "hour",
    "day-of-month": "day of the month",
    "month": "month",
    "day-of-week": "day of the week",
}


class BadSchedule(HermesError):
    """A schedule that cannot be kept; the sentence says why."""


def zone_of(name: str) -> ZoneInfo:
    """The time zone of that name. Raises `BadSchedule` with the nearest name."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        near = nearest_key(name, sorted(available_timezones()))
        raise BadSchedule(
            f"There is no time zone `{name}`. "
            + (f"Did you mean `{near}`?" if near else "Say one such as Europe/Rome.")
        ) from error


def parse(text: str, zone: str, now: float) -> Schedule:
    """The schedule that a text means in that zone. Raises `BadSchedule`."""
    said = " ".join(text.split())
    if not said or len(said) > LONGEST_SPEC:
        raise BadSchedule(f"`{said[:40]}` is no schedule. {FORMS}")
    place, low = zone_of(zone), said.lower()
    if low.startswith("@"):
        if low not in MACROS:
            raise BadSchedule(f"There is no `{said}`. There are: {', '.join(MACROS)}.")
        return _line(MACROS[low], zone, now)
    if found := AT_TIME.fullmatch(low):
        return _line(_daily(*found.groups()), zone, now)
    if low.startswith("every "):
        return _every(low.removeprefix("every ").strip(), zone, now)
    if (delay := _seconds(low.removeprefix("in "))) is not None:
        return _once(int(now) + max(1, delay), zone, now)
    if (at := _time(said)) is not None:
        return _at(at, place, zone, now)
    if len(said.split()) < 5:
        raise BadSchedule(f"`{said}` is no schedule. {FORMS}")
    return _line(said, zone, now)


def _daily(which: str, hour: str, minute: str) -> str:
    if int(hour) > 23 or int(minute) > 59:
        raise BadSchedule(f"{hour}:{minute} is no time of a day.")
    day = "1-5" if which == "weekday" else str(DAYS.index(which[:3])) if which[:3] in DAYS else "*"
    return f"{int(minute)} {int(hour)} * * {day}"


def _every(span: str, zone: str, now: float) -> Schedule:
    seconds = _seconds(span if span[:1].isdigit() else f"1 {span}")
    if seconds is None:
        raise BadSchedule(f"`every {span}` is no interval. Say `every 90m`, `every 2h` or `every day at 09:00`.")
    if not LEAST <= seconds <= FARTHEST:
        often = f"too often: the least interval is {LEAST} s" if seconds < LEAST else "more than 100 years"
        raise BadSchedule(f"`every {span}` is {often}.")
    return Schedule(kind=Kind.EVERY, spec=str(seconds), zone=zone, anchor=int(now))


def _seconds(span: str) -> int | None:
    if not SPAN.fullmatch(span):
        return None
    return sum(int(number) * UNITS[unit] for number, unit in PIECE.findall(span))


def _time(said: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(said)
    except ValueError:
        return None
    return at.replace(year=min(9998, max(2, at.year)))  # In some zone it would lie beyond the calendar.


def _at(at: datetime, place: ZoneInfo, zone: str, now: float) -> Schedule:
    note = ""
    if at.tzinfo is None:
        local, at = at, at.replace(tzinfo=place)
        there = at.astimezone(UTC).astimezone(place)
        if there.replace(tzinfo=None) != local:
            note = f"{local:%H:%M} does not exist there on that day: it is {there:%Y-%m-%d %H:%M %Z}."
        elif at.utcoffset() != at.replace(fold=1).utcoffset():
            note = f"{local:%H:%M} comes twice on that day: the earlier one is meant ({at:%Z})."
    return _once(int(at.timestamp()), zone, now, note)


def _once(due: int, zone: str, now: float, note: str = "") -> Schedule:
    if due <= now:
        raise BadSchedule(f"{local(due, zone)} is in the past by {span_words(now - due)}.")
    if due > now + FARTHEST:
        raise BadSchedule("A time is at most 100 years ahead.")
    return Schedule(kind=Kind.AT, spec=str(due), zone=zone, note=note)


def _line(said: str, zone: str, now: float) -> Schedule:
    fields = said.upper().split()
    if len(fields) != 5:
        many = " (five fields; seconds and years are not kept)"
        raise BadSchedule(f"`{said}` has {len(fields)} fields{many}. {FORMS}")
    if "?" in said:
        raise BadSchedule(f"`{said}`: write `*` instead of `?`: `{said.replace('?', '*')}`.")
    if re.search(r"\d+W", fields[2]):
        raise BadSchedule(f"`{said}`: a nearest weekday (`{fields[2]}`) is not kept; `LW` is the last weekday.")
    line = " ".join(fields)
    try:
        found = Schedule(kind=Kind.CRON, spec=line, zone=zone)
        if next(instants(found, int(now)), None) is None:
            raise BadSchedule(f"`{said}` never comes.")
    except libraries.cronsim.CronSimError as error:
        field = FIELDS.get(str(error).removeprefix("Bad "), "")
        raise BadSchedule(f"`{said}`: the {field or 'line'} is wrong. {FORMS}") from error
    except (OverflowError, RecursionError, ValueError) as error:
        raise BadSchedule(f"`{said}` cannot be read. {FORMS}") from error
    return found


def instants(schedule: Schedule, after: int, upto: int | None = None) -> Iterator[int]:
    """The instants (seconds since 1970) after one moment, up to another (None: without end), in order, each once.

    A cron line is as in Debian: one with fixed minutes and hours comes once on each local day, at the first moment that
    exists where its own does not; one with a star runs through changes of the clock.
    """
    for due in _all(schedule, after):
        if upto is not None and due > upto:
            return
        yield due


def _all(schedule: Schedule, after: int) -> Iterator[int]:
    match schedule.kind:
        case Kind.AT:
            if int(schedule.spec) > after:
                yield int(schedule.spec)
        case Kind.EVERY:
            period = int(schedule.spec)
            due = schedule.anchor + (max(0, after - schedule.anchor) // period + 1) * period
            while True:
                yield due
                due += period
        case Kind.CRON:
            last = after
            for found in late(LINE)(schedule.spec, datetime.fromtimestamp(after, zone_of(schedule.zone))):
                if (due := int(found.timestamp())) > last:  # Two times in one gap are one moment.
                    yield due
                    last = due


def window_of(schedule: Schedule, now: float) -> float:
    """How late an instant may begin: half the gap between two of them, from 2 minutes to 2 hours; a day for one
    alone."""
    if schedule.kind is Kind.AT:
        return 86_400.0
    first, second = (*islice(instants(schedule, int(now)), 2), 0, 0)[:2]
    return min(7200.0, max(120.0, (second - first) / 2))


def words(schedule: Schedule) -> str:
    """The schedule in English."""
    match schedule.kind:
        case Kind.AT:
            return f"Once, at {local(int(schedule.spec), schedule.zone)}"
        case Kind.EVERY:
            return f"Every {span_words(int(schedule.spec))}, counted from {local(schedule.anchor, schedule.zone)}"
        case Kind.CRON:
            return f"{libraries.cronsim.CronSim(schedule.spec, ANY_DAY).explain()} ({schedule.zone})"


def upcoming(schedule: Schedule, now: float, count: int = 3, ends: float | None = None) -> tuple[str, ...]:
    """The next local times, up to an end."""
    upto = None if ends is None else int(ends)
    return tuple(local(due, schedule.zone) for due in islice(instants(schedule, int(now), upto), count))


def local(at: float, zone: str) -> str:
    """A moment on the clock of a zone; of UTC, where there is no such zone any more."""
    try:
        clock: tzinfo = zone_of(zone)
    except BadSchedule:
        clock = UTC
    return f"{datetime.fromtimestamp(min(at, LAST), clock):%a %Y-%m-%d %H:%M %Z}"


def span_words(seconds: float) -> str:
    """A span of time in its two largest units: `1 d 3 h`."""
    left, said = int(timedelta(seconds=seconds).total_seconds()), []
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        if left >= size:
            said.append(f"{left // size} {unit}")
            left %= size
    return " ".join(said[:2]) or "0 s"


AHEAD = 86_400
"""Seconds for which instants are rows in advance; the next one always is."""
MOST_AHEAD = 64
MOST_CAUGHT_UP = 100
GRACE = 30.0
"""Seconds after which an instant is late where nothing is caught up."""
OLDEST = 400 * 86_400
"""Seconds of an outage that are counted; what was missed before is not."""
SET_BACK = 3 * 3600
"""Seconds that a clock may be set back before instants are planned from its new time on."""
NEVER = 1e15
DOWN, LATE = "down", "late"


def first_to_run(offered: Sequence[int], now: float, catch_up: CatchUp, window: float) -> int:
    """Apply a catch-up rule to past instants, in order: those from this place on still run, those before are missed."""
    match catch_up:
        case CatchUp.ALL:
            return max(0, len(offered) - MOST_CAUGHT_UP)
        case CatchUp.LAST:
            return len(offered) - 1 if offered and now - offered[-1] <= window else len(offered)
        case CatchUp.SKIP:
            return next((at for at, due in enumerate(offered) if now - due <= GRACE), len(offered))


def delay_of(job: Job, due: int) -> int:
    """The seconds by which an instant is put off: the same on every machine."""
    if not job.plan.jitter:
        return 0
    return int.from_bytes(sha256(f"{job.id}@{due}".encode()).digest()[:8]) % (job.plan.jitter + 1)


def instant_of(job: Job, due: int, window: float) -> Instant:
    """The row of an instant to come."""
    plan, ready = job.plan, float(due + delay_of(job, due))
    grace = {CatchUp.SKIP: GRACE, CatchUp.LAST: window, CatchUp.ALL: NEVER}[plan.catch_up]
    queues = plan.overlap is Overlap.QUEUE or plan.catch_up is CatchUp.ALL
    return Instant(job=job.id, due=due, ready_at=ready, late_at=ready + grace, queues=queues)


def over(job: Job, missed: Sequence[int], now: float, state: InstantState, why: str) -> tuple[Instant, ...]:
    """The one row that stands for instants that did not run."""
    if not missed:
        return ()
    due = missed[-1]
    ended = Instant(job=job.id, due=due, state=state, why=why, counts=len(missed), ready_at=float(due), ended=now)
    return (ended,)


def passed(job: Job, now: float) -> list[int]:
    """The instants that passed since a job was planned last."""
    moment = int(now)
    return list(instants(job.plan.schedule, max(job.planned_to, moment - OLDEST), moment))


def plan(job: Job, waiting: Sequence[int], now: float, since: float, *, busy: bool = False) -> Planned:
    """What to change so that the rows of a job are as its schedule says. `waiting` are its planned instants, `busy`:
    one is under way; those of before `since` passed while nobody worked."""
    schedule, moment, rule = job.plan.schedule, int(now), job.plan.catch_up
    planned_to = job.planned_to if job.planned_to <= moment + SET_BACK else moment
    past = sorted({*passed(job, now), *(due for due in waiting if due <= moment)})
    window = job.plan.window if job.plan.window is not None else window_of(schedule, past[-1] - 1 if past else moment)
    first = first_to_run(past, now - (delay_of(job, past[-1]) if past else 0), rule, window)
    run, missed = past[first:], past[:first]
    ahead = _ahead(job, max(moment, planned_to), len(run))
    new = [instant_of(job, due, window) for due in (*run, *ahead) if due not in waiting]
    new += over(job, missed, now, InstantState.MISSED, DOWN if past and past[0] < since else LATE)
    kept = {*run, *ahead, *(due for due in waiting if moment < due <= planned_to)}
    look_at = min(ahead[len(ahead) // 2], moment + AHEAD) if ahead else moment + AHEAD
    return Planned(
        new=tuple(new),
        gone=tuple(due for due in waiting if due not in kept),
        to=max(moment, planned_to),
        look_at=float(look_at),
        done=not kept and not busy,
    )


def _ahead(job: Job, after: int, running: int) -> list[int]:
    """The instants to come that are rows in advance."""
    most = MOST_AHEAD if job.remaining is None else min(MOST_AHEAD, max(0, job.remaining - running))
    ends, found = job.plan.ends, list[int]()
    for due in islice(instants(job.plan.schedule, after), most):
        if (ends is not None and due > ends) or (found and due > after + AHEAD):
            break
        found.append(due)
    return found
