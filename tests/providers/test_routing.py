"""What follows a failure: properties that hold for every error, limit and chance."""

import inspect

from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.core import errors
from hermes_agent.core.errors import AuthRefused, EmptyReply, ProviderError, RateLimited, ServerFailed
from hermes_agent.providers.routing import LONGEST_DELAY, LONGEST_WAIT, Attempts, GiveUp, RetryAfter, decide

KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, ProviderError) and kind is not ProviderError
]
ERRORS = st.builds(
    lambda kind, after: kind("failed", retry_after=after),
    st.sampled_from(KINDS),
    st.none() | st.floats(0, 1e6),
)
ATTEMPTS = st.builds(
    lambda made, left: Attempts(made=made, left=left), st.integers(1, 2_000), st.none() | st.floats(-10, 1e5)
)
RETRIES = st.integers(0, 50)
CHANCE = st.floats(0, 1, exclude_max=True)


@given(ERRORS, ATTEMPTS, RETRIES, CHANCE)
def test_no_attempt_begins_at_or_after_the_deadline(
    error: ProviderError, attempts: Attempts, retries: int, chance: float
):
    decision = decide(error, attempts, max_retries=retries, chance=chance)
    if isinstance(decision, RetryAfter) and attempts.left is not None:
        assert decision.delay < attempts.left


@given(ERRORS, ATTEMPTS, RETRIES, CHANCE)
def test_a_delay_is_bounded_and_never_before_the_moment_the_provider_named(error, attempts, retries, chance):
    decision = decide(error, attempts, max_retries=retries, chance=chance)
    if isinstance(decision, RetryAfter):
        assert 0 <= decision.delay <= max(LONGEST_DELAY, LONGEST_WAIT)
        assert error.retry_after is None or decision.delay == error.retry_after
        assert error.retryable


@given(ERRORS, RETRIES, CHANCE)
def test_every_chain_of_attempts_ends(error, retries, chance):
    made = 1
    while isinstance(decide(error, Attempts(made=made, left=None), max_retries=retries, chance=chance), RetryAfter):
        made += 1
    assert made <= retries + 1


@given(ATTEMPTS, RETRIES, CHANCE)
def test_what_cannot_get_better_is_not_tried_again(attempts, retries, chance):
    assert isinstance(decide(AuthRefused("no"), attempts, max_retries=retries, chance=chance), GiveUp)


def test_the_delay_doubles_up_to_thirty_seconds_and_half_of_it_is_chance():
    def delays(chance: float) -> list[float]:
        return [
            decide(ServerFailed("x"), Attempts(made=made, left=None), max_retries=99, chance=chance).delay
            for made in range(1, 9)
        ]

    assert delays(0.0) == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert delays(0.5) == [0.375, 0.75, 1.5, 3, 6, 12, 22.5, 22.5]


def test_an_hour_of_rest_is_not_waited_for():
    decision = decide(RateLimited("x", retry_after=3600), Attempts(made=1, left=None), max_retries=3, chance=0)
    assert decision == GiveUp(reason="the provider wants 3600 s of rest")


def test_an_empty_reply_is_worth_one_retry():
    once, twice = (decide(EmptyReply("x"), Attempts(made=made, left=None), max_retries=5, chance=0) for made in (1, 2))
    assert isinstance(once, RetryAfter)
    assert isinstance(twice, GiveUp)
