"""Who a command talked to, as its record tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.sandbox.traffic import MOST, REACHED, STOPPED, Callers, Traffic, traffic_of


@pytest.fixture
def records(tmp_path: Path) -> Path:
    for name in "abc":
        (tmp_path / name).mkdir()
    return tmp_path


def test_what_was_reached_and_refused_stands_once_in_its_order(records: Path) -> None:
    traffic = Traffic(records / "a")
    for host in ("x:443", "y:80", "x:443"):
        traffic.note(REACHED, host)
    traffic.note(STOPPED, "a connection to\nreached z:1")

    assert traffic_of(records / "a") == (("x:443", "y:80"), ("a connection to?reached z:1",))
    assert traffic_of(records / "b") == ((), ())


def test_many_refusals_leave_room_for_what_is_reached(records: Path) -> None:
    traffic = Traffic(records / "a")
    for port in range(3 * MOST):
        traffic.note(STOPPED, f"a connection to h:{port}")
    traffic.note(REACHED, "x:443")

    reached, stopped = traffic_of(records / "a")
    assert (reached, len(stopped)) == (("x:443",), MOST)


def test_those_who_talked_with_each_other_reached_the_same(records: Path) -> None:
    a, b, c = (Traffic(records / name) for name in "abc")
    a.link(b)
    b.link(c)
    a.link(a)
    c.note(REACHED, "x:443")

    assert all(traffic_of(records / name)[0] == ("x:443",) for name in "abc")


def test_a_connection_has_one_caller_once(records: Path) -> None:
    callers, traffic = Callers(), Traffic(records / "a")
    with callers.connecting() as ports:
        ports[4000] = traffic

    assert callers.take(4000) is traffic
    assert callers.take(4000) is None
