"""Planning of a job's instants: rows in advance, and what becomes of those whose time has passed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import islice

from hermes_agent.store.work.cron.records import CatchUp, Instant, InstantState, Job, Overlap, Planned
from hermes_agent.work.cron.schedule import instants, window_of

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
