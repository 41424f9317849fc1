"""What follows a failure: properties that hold for every chain, sequence of outcomes, deadline and chance."""

import inspect
from dataclasses import replace

from hypothesis import given, strategies as st

from hermes_agent.core import errors
from hermes_agent.core.errors import (
    AuthRefused,
    BadRequest,
    ContentRefused,
    ContextTooLong,
    EmptyReply,
    ModelNotFound,
    OutOfCredit,
    ProviderError,
    RateLimited,
    ServerFailed,
    ThinkingRefused,
)
from hermes_agent.providers.routing.policy import (
    LONGEST_DELAY,
    LONGEST_WAIT,
    MOST_SHRINKS,
    Decision,
    Failed,
    GiveUp,
    Place,
    Situation,
    Station,
    Step,
    Try,
    begin,
    decide,
)
from hermes_agent.store.cooldowns import CoolDown

KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, ProviderError) and kind is not ProviderError
]
STATIONS = st.builds(
    Station,
    provider=st.sampled_from(["a", "b", "c"]),
    model=st.sampled_from(["m", "n", "o"]),
    credentials=st.lists(st.sampled_from(["K1", "K2", "K3"]), min_size=1, max_size=3, unique=True).map(tuple),
    window=st.sampled_from([8_000, 200_000, 1_000_000]),
)
RESTS = st.builds(
    CoolDown,
    provider=st.sampled_from(["a", "b", "c"]),
    credential=st.sampled_from(["", "K1", "K2", "K3"]),
    model=st.sampled_from(["", "m", "n", "o"]),
    until=st.floats(0, 2_000),
    reason=st.just("RateLimited"),
)
SITUATIONS = st.builds(
    Situation,
    chain=st.lists(STATIONS, min_size=1, max_size=4, unique_by=lambda one: one.name).map(tuple),
    rests=st.lists(RESTS, max_size=4).map(tuple),
    now=st.just(1_000.0),
    left=st.none() | st.floats(-10, 1e5),
    max_retries=st.integers(0, 6),
    chance=st.floats(0, 1, exclude_max=True),
)
OUTCOMES = st.lists(
    st.tuples(st.sampled_from(KINDS), st.none() | st.floats(0, 1e6), st.booleans(), st.none() | st.integers(0, 2_000)),
    min_size=60,
    max_size=60,
)


def journey(situation: Situation, outcomes: list[tuple[object, ...]]) -> list[tuple[tuple[Failed, ...], Decision]]:
    """What is decided while one attempt after the other ends with these outcomes."""
    place, history, seen, prefilled = begin(situation), (), [], True
    for kind, after, begun, smaller in outcomes:
        failed = Failed(place=place, kind=kind, tokens=1_000, retry_after=after, prefilled=begun and prefilled)
        history = (*history, failed)
        decision = decide(history, replace(situation, smaller=smaller))
        seen.append((history, decision))
        if isinstance(decision, GiveUp):
            return seen
        place = decision.place
        prefilled = prefilled and decision.step is not Step.NO_PREFILL
        situation = replace(situation, rests=(*situation.rests, *decision.rests))
        if situation.left is not None:
            situation = replace(situation, left=situation.left - decision.delay)
    raise AssertionError("it never ended")


@given(SITUATIONS, OUTCOMES)
def test_every_sequence_of_outcomes_ends_within_a_known_number_of_attempts(situation, outcomes):
    made = len(journey(situation, outcomes))
    keys = sum(len(station.credentials) for station in situation.chain)
    assert made <= keys + len(situation.chain) * (situation.max_retries + 2) + MOST_SHRINKS + 1


@given(SITUATIONS, OUTCOMES)
def test_no_attempt_begins_at_or_after_the_deadline(situation, outcomes):
    left = situation.left
    for _, decision in journey(situation, outcomes):
        if isinstance(decision, Try) and left is not None:
            assert decision.delay < left
            left -= decision.delay


@given(SITUATIONS, OUTCOMES)
def test_retries_at_one_model_are_bounded(situation, outcomes):
    steps = journey(situation, outcomes)
    for station in range(len(situation.chain)):
        retried = [
            decision
            for _, decision in steps
            if isinstance(decision, Try) and decision.step is Step.RETRY and decision.place.station == station
        ]
        assert len(retried) <= situation.max_retries


@given(SITUATIONS, OUTCOMES)
def test_a_failure_changes_nothing_of_another_provider(situation, outcomes):
    for history, decision in journey(situation, outcomes):
        station = situation.chain[history[-1].place.station]
        for rest in decision.rests:
            assert rest.provider == station.provider
            assert rest.credential in {"", history[-1].place.credential}
            assert rest.credential or rest.model == station.model


@given(SITUATIONS, OUTCOMES)
def test_a_key_that_was_refused_is_not_asked_again_at_the_same_model(situation, outcomes):
    refused = set()
    for history, decision in journey(situation, outcomes):
        if history[-1].kind in {AuthRefused, OutOfCredit}:
            refused.add(history[-1].place)
            assert not isinstance(decision, Try) or decision.place not in refused
            assert isinstance(decision, GiveUp) or decision.step in {Step.ROTATE, Step.FALL_BACK}


@given(SITUATIONS, OUTCOMES)
def test_a_question_that_was_too_long_is_never_asked_in_the_same_size_of_the_same_model(situation, outcomes):
    steps = journey(situation, outcomes)
    for (history, decision), smaller in zip(steps, (outcome[3] for outcome in outcomes), strict=False):
        if history[-1].kind is not ContextTooLong or isinstance(decision, GiveUp):
            continue
        if decision.step is Step.SHRINK:
            assert smaller is not None
            assert smaller < history[-1].tokens
        else:
            assert decision.step is Step.FALL_BACK
            asked = max(situation.chain[failed.place.station].window for failed in history)
            assert situation.chain[decision.place.station].window > asked


@given(SITUATIONS, OUTCOMES)
def test_a_delay_is_bounded_and_never_before_the_moment_the_provider_named(situation, outcomes):
    for history, decision in journey(situation, outcomes):
        if isinstance(decision, Try) and decision.step is Step.RETRY:
            assert 0 <= decision.delay <= max(LONGEST_DELAY, LONGEST_WAIT)
            assert history[-1].retry_after in {None, decision.delay}
            assert history[-1].kind.retryable


@given(SITUATIONS)
def test_what_rests_is_asked_first_only_where_everything_rests(situation):
    place = begin(situation)
    if situation.resting_until(place):
        places = [Place(station=n, credential=c) for n, one in enumerate(situation.chain) for c in one.credentials]
        assert all(situation.resting_until(each) for each in places)
        assert place.station == 0


@given(SITUATIONS, OUTCOMES)
def test_every_end_has_a_reason(situation, outcomes):
    assert journey(situation, outcomes)[-1][1].reason


ONE = Situation(chain=(Station(provider="a", model="m", credentials=("K1",), window=1),), max_retries=99)
POOL = replace(ONE, chain=(replace(ONE.chain[0], credentials=("K1", "K2")),), now=1_000.0)
TWO = replace(ONE, chain=(ONE.chain[0], Station(provider="b", model="n", credentials=("K9",), window=9)), max_retries=1)


def failed(kind: type[ProviderError], times: int = 1, **more: object) -> tuple[Failed, ...]:
    return (Failed(place=Place(credential="K1"), kind=kind, **more),) * times


def test_the_delay_doubles_up_to_thirty_seconds_and_half_of_it_is_chance():
    def delays(chance: float) -> list[float]:
        return [decide(failed(ServerFailed, made), replace(ONE, chance=chance)).delay for made in range(1, 9)]

    assert delays(0.0) == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert delays(0.5) == [0.375, 0.75, 1.5, 3, 6, 12, 22.5, 22.5]


def test_an_hour_of_rest_is_not_waited_for():
    decision = decide(failed(RateLimited, retry_after=3_600.0), replace(ONE, now=10.0))
    assert decision.reason == "the provider asks for a pause of 3600 s"
    assert [(rest.credential, rest.model, rest.until) for rest in decision.rests] == [("K1", "m", 3_610.0)]


def test_half_a_minute_of_rest_is_waited_for_only_without_another_model():
    assert decide(failed(RateLimited, retry_after=30.0), ONE).delay == 30.0
    assert decide(failed(RateLimited, retry_after=30.0), TWO).place == Place(station=1, credential="K9")
    assert decide(failed(RateLimited, retry_after=3.0), TWO).delay == 3.0


def test_an_empty_reply_is_worth_one_retry():
    assert isinstance(decide(failed(EmptyReply), ONE), Try)
    assert isinstance(decide(failed(EmptyReply, 2), ONE), GiveUp)


def test_a_refused_key_gives_way_to_the_next_one_and_rests():
    decision = decide(failed(AuthRefused), POOL)
    assert (decision.step, decision.place.credential, decision.delay) == (Step.ROTATE, "K2", 0.0)
    (rest,) = decision.rests
    assert (rest.provider, rest.credential, rest.model, rest.until) == ("a", "K1", "", 1_300.0)


def test_a_resting_key_is_not_rotated_to():
    resting = CoolDown(provider="a", credential="K2", until=2_000.0, reason="OutOfCredit")
    decision = decide(failed(AuthRefused), replace(POOL, rests=(resting,)))
    assert decision.reason == "no other key of this provider can be used now"


def test_a_model_that_keeps_failing_gives_way_to_the_next_and_rests():
    assert decide(failed(ServerFailed), TWO).step is Step.RETRY
    decision = decide(failed(ServerFailed, 2), TWO)
    assert (decision.step, decision.place) == (Step.FALL_BACK, Place(station=1, credential="K9"))
    assert [(rest.provider, rest.credential, rest.model) for rest in decision.rests] == [("a", "", "m")]


def test_a_model_that_is_not_there_gives_way_at_once():
    assert decide(failed(ModelNotFound), TWO).step is Step.FALL_BACK


def test_what_a_provider_refuses_to_say_no_other_is_asked():
    assert isinstance(decide(failed(ContentRefused), TWO), GiveUp)


def test_a_request_that_was_refused_says_nothing_about_the_model():
    decision = decide(failed(BadRequest), TWO)
    assert (decision.step, decision.rests) == (Step.FALL_BACK, ())


def test_a_reply_that_may_not_be_begun_is_asked_for_in_words():
    assert decide(failed(BadRequest, prefilled=True), ONE).step is Step.NO_PREFILL
    assert isinstance(decide(failed(BadRequest, 2, prefilled=True), ONE), GiveUp)


def test_thinking_that_is_refused_is_left_out_once_however_few_retries_there_are():
    without = replace(ONE, max_retries=0)
    assert decide(failed(ThinkingRefused), without).step is Step.NO_THINKING
    assert isinstance(decide(failed(ThinkingRefused, 2), without), GiveUp)
    assert decide(failed(ThinkingRefused, 2), TWO).step is Step.FALL_BACK


def test_a_model_whose_rest_has_ended_is_asked_first_again():
    rest = CoolDown(provider="a", model="m", until=1_060.0, reason="Overloaded")
    during, after = (begin(replace(TWO, rests=(rest,), now=now)) for now in (1_059.0, 1_060.0))
    assert (during.station, after.station) == (1, 0)
