"""Limits of money and tokens: what a call is granted, and the sentence where it is not."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.errors import LimitReached
from hermes_agent.core.spending import (
    NANO,
    Bid,
    Budget,
    Grant,
    Limit,
    Limits,
    Scope,
    Spent,
    Standing,
    Unit,
    UnknownPrice,
    amount,
    day_of,
    grant,
    limit_of,
    nanos,
    warning,
)

BID = Bid(model="v/m", tokens=1_000, longest=8_000, question=nanos(0.002), rate=10_000.0)  # $10 per million
UNPRICED = Bid(model="v/strange", tokens=1_000, longest=8_000)
FREE = Bid(model="v/free", tokens=1_000, longest=8_000, question=0, rate=0.0)
BERLIN = ZoneInfo("Europe/Berlin")


def day(money: float | None = None, tokens: int | None = None, spent: Spent | None = None) -> Standing:
    limit = Limit(scope=Scope.DAY, money=None if money is None else nanos(money), tokens=tokens)
    return Standing(limit=limit, spent=spent or Spent())


def test_without_limits_a_call_is_granted_what_it_wants():
    assert grant(BID, ()) == Grant(max_output=None, money=nanos(0.082), tokens=9_000)


def test_the_reply_is_cut_to_what_the_tightest_limit_pays_for():
    spent = Spent(money=nanos(0.5), held_money=nanos(0.45))

    granted = grant(BID, [day(money=10.0), day(money=1.0, spent=spent), day(tokens=5_500)])

    assert granted == Grant(max_output=4_500, money=nanos(0.047), tokens=5_500)
    assert grant(BID, [day(money=1.0, spent=spent)]).max_output == 4_800


def test_a_cap_stays_where_the_limits_leave_room():
    assert grant(Bid(model="m", tokens=1, longest=50, cap=50), [day(tokens=1_000)]).max_output == 50


def test_where_the_models_own_limit_is_not_known_a_limit_needs_a_cap():
    unsure = Bid(model="m", tokens=1, longest=50, sure=False)

    assert grant(unsure, ()).max_output is None
    assert grant(unsure, [day(tokens=1_000)]).max_output == 50


@given(
    st.integers(0, 10**10),
    st.integers(0, 10**10),
    st.integers(0, 10**6),
    st.integers(1, 10**6),
    st.floats(0, 10**6),
    st.integers(0, 10**7),
)
def test_no_grant_is_ever_more_than_is_left(limit, used, tokens, longest, rate, question):
    bid = Bid(model="m", tokens=tokens, longest=longest, question=question, rate=rate)
    standing = Standing(
        limit=Limit(scope=Scope.DAY, money=limit, tokens=limit // 1_000),
        spent=Spent(money=used // 2, held_money=used - used // 2, tokens=used // 3_000),
    )
    try:
        granted = grant(bid, [standing])
    except LimitReached:
        return
    assert granted.money is not None
    assert granted.money == 0 or granted.money + used <= limit
    assert granted.tokens + used // 3_000 <= limit // 1_000
    assert granted.tokens - tokens >= min(16, longest)


def test_a_question_that_is_too_dear_is_refused_with_the_setting_and_the_way_on():
    with pytest.raises(LimitReached) as caught:
        grant(BID, [day(money=1.0, spent=Spent(money=nanos(0.9), held_money=nanos(0.099)))])

    assert str(caught.value) == (
        "Stopped: the money limit of today ($1.00, `budget.day.money`) was reached: $0.90 used, $0.0990 is reserved "
        "for unfinished calls; the next request alone may need $0.0020. The limit resets at midnight; "
        "`hermes config set budget.day.money AMOUNT` raises it (in a terminal: from the next start on). Then "
        "`/continue`."
    )
    assert caught.value.limit == "money limit"


@pytest.mark.parametrize("scope", Scope)
def test_each_limit_names_its_setting_and_how_to_go_on(scope):
    with pytest.raises(LimitReached) as caught:
        grant(BID, [Standing(limit=Limit(scope=scope, tokens=10, purpose="web"))])

    of_purpose = scope is Scope.PURPOSE
    assert ("`auxiliary.web.tokens`" if of_purpose else f"`budget.{scope}.tokens`") in str(caught.value)
    assert ("`/continue`" in str(caught.value)) is not of_purpose
    assert caught.value.limit == "token limit"


def test_an_unknown_price_is_refused_where_money_is_limited_unless_allowed():
    with pytest.raises(LimitReached, match=r"price of v/strange is unknown.*budget\.unknown_price"):
        grant(UNPRICED, [day(money=1.0)])

    assert grant(UNPRICED, [day(money=1.0)], UnknownPrice.ALLOW).money is None
    assert grant(UNPRICED, [day(tokens=5_000)]).max_output == 4_000


def test_what_is_free_is_never_stopped_by_money():
    assert grant(FREE, [day(money=0.0)]).money == 0
    with pytest.raises(LimitReached):
        grant(FREE, [day(tokens=0)])


def test_a_question_without_a_price_for_the_reply_may_be_as_long_as_it_wants():
    bid = Bid(model="m", tokens=10, longest=500, question=NANO, rate=0.0)

    assert grant(bid, [day(money=1.0)]).money == NANO
    with pytest.raises(LimitReached):
        grant(bid, [day(money=0.99)])


def test_a_rate_that_does_not_divide_is_never_rounded_in_the_calls_favour():
    rate = 9 / 7  # 27 of it are 21 tokens, says floating point; 21 tokens are 28 of it
    granted = grant(
        Bid(model="m", tokens=0, longest=100, question=0, rate=rate),
        [Standing(limit=Limit(scope=Scope.CALL, money=27))],
    )

    assert (granted.max_output, granted.money) == (20, 26)


def test_a_limit_warns_from_four_fifths_of_what_is_used_on():
    standing = day(money=1.0, tokens=100, spent=Spent(money=nanos(0.8), tokens=79, held_tokens=21))

    assert [unit for unit in Unit if standing.warns(unit)] == [Unit.MONEY]
    assert warning(standing, Unit.MONEY) == (
        "80 % of the money limit of today is used: $0.80 of $1.00 (`budget.day.money`)."
    )
    assert standing.left(Unit.TOKENS) == 0
    assert day(money=1.0).left(Unit.TOKENS) is None


def test_amounts_are_readable():
    assert [amount(Unit.MONEY, nanos(dollars)) for dollars in (0, 1, 0.0412, 1234.5)] == [
        "$0.00",
        "$1.00",
        "$0.0412",
        "$1,234.50",
    ]
    assert amount(Unit.TOKENS, 12_000) == "12,000 tokens"


def test_a_day_is_the_calendars_also_where_it_has_23_or_25_hours():
    def at(*moment: int) -> float:
        return datetime(*moment, tzinfo=UTC).timestamp()

    assert day_of(at(2026, 3, 28, 22, 59), BERLIN) == "2026-03-28"
    assert day_of(at(2026, 3, 28, 23, 0), BERLIN) == "2026-03-29"  # winter time: UTC+1
    assert day_of(at(2026, 3, 29, 21, 59), BERLIN) == "2026-03-29"
    assert day_of(at(2026, 3, 29, 22, 0), BERLIN) == "2026-03-30"  # 23 hours later, summer time
    assert day_of(at(2026, 10, 24, 22, 0), BERLIN) == "2026-10-25"
    assert day_of(at(2026, 10, 25, 22, 59), BERLIN) == "2026-10-25"
    assert day_of(at(2026, 10, 25, 23, 0), BERLIN) == "2026-10-26"  # 25 hours later


def test_the_day_is_this_machines_where_no_zone_is_named():
    assert day_of(0.0) == "1970-01-01"


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


def test_a_limit_is_one_where_money_or_tokens_were_set():
    assert limit_of(Scope.RUN, None, None) is None
    assert limit_of(Scope.RUN, 0.5, None) == Limit(scope=Scope.RUN, money=NANO // 2)
    assert limit_of(Scope.JOB, None, 7) == Limit(scope=Scope.JOB, tokens=7)
