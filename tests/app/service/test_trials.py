"""Runs under suspicion begin one by one."""

from dataclasses import dataclass

from hermes_agent.app.service.trials import TRIAL, Trials
from hermes_agent.store.leases import Lease
from hermes_agent.testing.clock import FakeClock


@dataclass
class Run:
    waits: bool = False


def lease(name: str, *, suspect: bool = True, poison: str = "") -> Lease:
    return Lease(lane=name, worker="w", epoch=1, suspect=suspect, poison=poison)


def test_others_are_begun_side_by_side():
    trials = Trials(FakeClock(), {"s1": Run(), "s2": Run()})

    trials.begun(lease("s1", suspect=False))
    trials.begun(lease("s2", poison="Given up."))

    assert trials.open()


def test_a_suspect_waits_until_the_one_before_has_ended():
    running = {"s1": Run(), "s2": Run()}
    trials = Trials(FakeClock(), running)
    trials.begun(lease("s1"))
    assert not trials.open()

    del running["s1"]

    assert trials.open()


def test_one_that_waits_for_a_person_holds_nobody_up():
    run = Run()
    trials = Trials(FakeClock(), {"s1": run})
    trials.begun(lease("s1"))

    run.waits = True
    assert trials.open()

    run.waits = False
    assert not trials.open()


async def test_one_that_has_lived_long_enough_holds_nobody_up():
    clock = FakeClock()
    trials = Trials(clock, {"s1": Run()})
    trials.begun(lease("s1"))

    await clock.advance(TRIAL - 1)
    assert not trials.open()

    await clock.advance(1)
    assert trials.open()
