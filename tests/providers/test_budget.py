"""What a call may cost is known before it is sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.core.errors import LimitReached
from hermes_agent.core.messages import said
from hermes_agent.core.model import ModelRequest
from hermes_agent.providers.budget import allow
from hermes_agent.providers.catalog import FREE, ModelFacts, Price
from tests.providers.asking import PREFIX

PRICE = Price(input=2.0, output=10.0, cached=0.2, cache_write=2.5)
FACTS = ModelFacts(window=100_000, output=8_000, price=PRICE)


def request(money: float | None = None, max_output: int | None = None) -> ModelRequest:
    return ModelRequest(
        call_id="c",
        session="s",
        run="r",
        turn=1,
        purpose="chat",
        prefix=PREFIX,
        messages=[said("hi")],
        money=money,
        max_output=max_output,
    )


def test_without_a_limit_of_money_only_the_caps_count():
    assert allow(FACTS, request(), tokens=1_000, configured=None).max_output is None
    assert allow(FACTS, request(max_output=500), tokens=1_000, configured=300).max_output == 300
    assert allow(FACTS, request(), tokens=1_000, configured=None).dollars == pytest.approx(0.0825)


@given(st.floats(0, 1), st.integers(0, 100_000), st.none() | st.integers(1, 9_000))
def test_the_worst_case_never_costs_more_than_there_is(money: float, tokens: int, cap: int | None):
    try:
        allowance = allow(FACTS, request(money=money, max_output=cap), tokens=tokens, configured=None)
    except LimitReached:
        return
    assert allowance.dollars is not None
    assert allowance.dollars <= money + 1e-9


def test_a_question_that_is_too_dear_is_not_sent():
    with pytest.raises(LimitReached, match=r"agent\.max_money") as caught:
        allow(FACTS, request(money=0.001), tokens=10_000, configured=None)
    assert caught.value.limit == "money limit"


def test_an_unknown_price_is_unknown_and_no_price_is_no_limit():
    assert allow(ModelFacts(), request(money=0.01), tokens=10**6, configured=None).dollars is None
    assert allow(ModelFacts(price=FREE), request(money=0.0), tokens=10**6, configured=None).dollars == 0.0
