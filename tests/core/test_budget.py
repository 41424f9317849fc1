"""Limits stop a run, each with its own sentence."""

import pytest

from hermes_agent.core.budget import Budget, Limits
from hermes_agent.core.errors import LimitReached


def test_the_turn_after_the_last_one_is_refused() -> None:
    budget = Budget(limits=Limits(turns=2))
    budget.spend_turn(0.0)
    budget.spend_turn(0.0)

    with pytest.raises(LimitReached, match=r"turn limit \(2, `agent.max_turns`\)") as caught:
        budget.spend_turn(0.0)

    assert caught.value.limit == "turn limit"
    assert budget.turns == 2


def test_the_deadline_stops_a_run() -> None:
    budget = Budget(limits=Limits(deadline=10.0))
    budget.spend_turn(9.9)

    with pytest.raises(LimitReached, match="time limit"):
        budget.spend_turn(10.0)


def test_without_limits_nothing_stops() -> None:
    budget = Budget(limits=Limits(turns=1_000_000))

    budget.spend_turn(1e12)

    assert budget.seconds_left(5.0) is None


def test_seconds_left_never_falls_below_zero() -> None:
    budget = Budget(limits=Limits(deadline=10.0))

    assert (budget.seconds_left(4.0), budget.seconds_left(11.0)) == (6.0, 0.0)
