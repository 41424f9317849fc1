"""Which instants are rows in advance, and what becomes of those whose time has passed."""

from dataclasses import replace

import pytest

from hermes_agent.store.work.cron.records import CatchUp, Instant, InstantState, Job, Overlap, Plan, Planned
from hermes_agent.work.cron.schedule import MOST_AHEAD, delay_of, first_to_run, parse, plan

NOW = 1_764_244_800.0  # 2025-11-27 12:00 UTC
DAY = 86_400


def job(said: str, **more: object) -> Job:
    given = {"created": NOW, "planned_to": int(NOW), "remaining": None}
    given |= {key: more.pop(key) for key in list(more) if key in given}
    made = Plan(schedule=parse(said, "UTC", NOW), **more)  # type: ignore[arg-type]  # what a test gives
    return Job(id="j", principal="cli:ann", name="n", plan=made, **given)  # type: ignore[arg-type]  # what a test gives


def ahead(found: Planned) -> list[int]:
    return [each.due for each in found.new if each.state is InstantState.PLANNED]


def over(found: Planned) -> list[Instant]:
    return [each for each in found.new if each.state is InstantState.MISSED]


def test_a_days_instants_are_rows_in_advance_at_least_one_and_not_too_many():
    assert len(ahead(plan(job("@hourly"), [], NOW, NOW))) == 24
    assert len(ahead(plan(job("* * * * *"), [], NOW, NOW))) == MOST_AHEAD
    assert len(ahead(plan(job("@yearly"), [], NOW, NOW))) == 1
    assert ahead(plan(job("@hourly", remaining=2), [], NOW, NOW)) == [int(NOW) + 3600, int(NOW) + 7200]
    assert ahead(plan(job("@hourly", ends=NOW + 4000), [], NOW, NOW)) == [int(NOW) + 3600]


def test_planning_again_changes_nothing():
    first = plan(job("@hourly"), [], NOW, NOW)
    again = plan(job("@hourly"), ahead(first), NOW, NOW)
    assert (again.new, again.gone) == ((), ())


def test_rows_of_another_schedule_go():
    rows = ahead(plan(job("@hourly"), [], NOW, NOW))
    changed = plan(job("30 * * * *"), rows, NOW, NOW)
    assert set(changed.gone) == set(rows)
    assert not set(ahead(changed)) & set(rows)


@pytest.mark.parametrize(("rule", "runs"), [(CatchUp.SKIP, 0), (CatchUp.LAST, 1), (CatchUp.ALL, 100)])
def test_each_instant_of_an_outage_is_accounted_for(rule: CatchUp, runs: int):
    waits = ahead(plan(job("* * * * *", catch_up=rule), [], NOW, NOW))
    back = NOW + 30 * DAY + 45
    found = plan(job("* * * * *", catch_up=rule), waits, back, back)
    ran = [due for due in ahead(found) if due <= back]
    (missed,) = over(found)
    assert len(ran) == runs
    assert len(ran) + missed.counts == 43_200
    assert missed.why == "down"


def test_the_last_instant_of_an_outage_runs_within_its_window_alone():
    every = job("every 6h")
    assert len(over(plan(every, [], NOW + 6 * 3600 + 7000, NOW))) == 0
    late = plan(every, [], NOW + 6 * 3600 + 7300, NOW + 6 * 3600)
    assert [(each.counts, each.why) for each in over(late)] == [(1, "late")]
    assert not [due for due in ahead(late) if due <= NOW + 6 * 3600 + 7300]


def test_rows_that_waited_through_an_outage_count_with_those_that_were_never_made():
    every = job("every 10m", catch_up=CatchUp.LAST)
    rows = ahead(plan(every, [], NOW, NOW))
    back = NOW + 12 * 3600 + 30
    found = plan(every, rows, back, back)
    (missed,) = over(found)
    assert missed.counts == 71
    assert set(found.gone) == set(rows)
    assert rows[-1] < back
    assert [due for due in ahead(found) if due <= back] == [int(NOW) + 12 * 3600]


def test_decisions_keep_their_order():
    assert first_to_run([], NOW, CatchUp.LAST, 60) == 0
    assert first_to_run([1, 2, 3], 4, CatchUp.LAST, 60) == 2


def test_a_clock_that_is_set_back_a_little_plans_on_from_where_it_was():
    hourly = job("@hourly", planned_to=int(NOW) + 7200)
    found = plan(hourly, [int(NOW) + 7200, int(NOW) + 10_800], NOW, NOW)
    assert min(ahead(found)) == int(NOW) + 4 * 3600
    assert found.to == int(NOW) + 7200
    assert found.gone == ()


def test_a_clock_that_was_far_ahead_does_not_silence_a_job():
    found = plan(job("@hourly", planned_to=int(NOW) + 365 * DAY), [], NOW, NOW)
    assert min(ahead(found)) == int(NOW) + 3600
    assert found.to == int(NOW)


def test_a_job_without_instants_is_done_when_nothing_of_it_runs():
    once = job("in 5m")
    assert not plan(once, [], NOW, NOW).done
    late = NOW + 2 * DAY
    assert plan(replace(once, planned_to=int(late)), [], late, late).done
    assert not plan(replace(once, planned_to=int(late)), [], late, late, busy=True).done
    assert plan(once, [], late, late).done
    assert len(over(plan(once, [], late, late))) == 1


def test_a_delay_is_the_same_everywhere_and_within_its_bounds():
    spread = job("@hourly", jitter=600)
    delays = {delay_of(spread, due) for due in range(0, 360_000, 3600)}
    assert len(delays) > 50
    assert all(0 <= each <= 600 for each in delays)
    assert delay_of(spread, 3600) == delay_of(spread, 3600)
    assert delay_of(job("@hourly"), 3600) == 0


def test_instants_that_are_all_caught_up_wait_for_each_other():
    assert all(each.queues for each in plan(job("@hourly", catch_up=CatchUp.ALL), [], NOW, NOW).new)
    assert all(each.queues for each in plan(job("@hourly", overlap=Overlap.QUEUE), [], NOW, NOW).new)
    assert not any(each.queues for each in plan(job("@hourly"), [], NOW, NOW).new)
