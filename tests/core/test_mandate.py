"""A mandate's limits and end, as a run understands them."""

from hermes_agent.core.mandate import Mandate, Work
from hermes_agent.core.spending import Limit, Scope
from hermes_agent.testing.clock import FakeClock


def test_its_end_is_a_moment_of_this_machine_however_its_clock_stands():
    clock = FakeClock(now=1_000.0)

    assert Mandate(kind=Work.CARD, until=1_060.0).deadline(clock) == clock.monotonic() + 60.0
    assert Mandate(kind=Work.CARD).deadline(clock) is None


def test_it_limits_each_run_and_its_whole_job():
    limits = Mandate(kind=Work.CARD, money=5, job_tokens=7).limits

    assert limits == (Limit(scope=Scope.RUN, money=5), Limit(scope=Scope.JOB, tokens=7))
    assert Mandate(kind=Work.CARD).limits == ()
