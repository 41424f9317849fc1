"""Runs under suspicion begin one by one."""

from dataclasses import dataclass

from hermes_agent.runs.crash_isolation import TRIAL, CrashIsolation
from hermes_agent.store.leases import Lease
from hermes_agent.testing.clock import FakeClock


@dataclass
class Run:
    waits: bool = False


def lease(name: str, *, suspect: bool = True, poison: str = "") -> Lease:
    return Lease(lane=name, worker="w", epoch=1, suspect=suspect, poison=poison)


def test_others_are_begun_side_by_side():
    crash_isolation = CrashIsolation(FakeClock(), {"s1": Run(), "s2": Run()})

    crash_isolation.begun(lease("s1", suspect=False))
    crash_isolation.begun(lease("s2", poison="Given up."))

    assert crash_isolation.open()


def test_a_suspect_waits_until_the_one_before_has_ended():
    running = {"s1": Run(), "s2": Run()}
    crash_isolation = CrashIsolation(FakeClock(), running)
    crash_isolation.begun(lease("s1"))
    assert not crash_isolation.open()

    del running["s1"]

    assert crash_isolation.open()


def test_one_that_waits_for_a_person_holds_nobody_up():
    run = Run()
    crash_isolation = CrashIsolation(FakeClock(), {"s1": run})
    crash_isolation.begun(lease("s1"))

    run.waits = True
    assert crash_isolation.open()

    run.waits = False
    assert not crash_isolation.open()


async def test_one_that_has_lived_long_enough_holds_nobody_up():
    clock = FakeClock()
    crash_isolation = CrashIsolation(clock, {"s1": Run()})
    crash_isolation.begun(lease("s1"))

    await clock.advance(TRIAL - 1)
    assert not crash_isolation.open()

    await clock.advance(1)
    assert crash_isolation.open()
