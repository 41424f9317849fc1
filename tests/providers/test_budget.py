"""What a call may cost is known before it is sent."""

from dataclasses import replace

import pytest

from hermes_agent.core.messages import ModelRequest, Prefix, Usage, said
from hermes_agent.core.spending import nanos
from hermes_agent.providers.route import DEFAULT_OUTPUT
from hermes_agent.providers.routing.endpoint import KEPT_SIZES, Sizes, bid_of
from tests.providers.asking import PREFIX, route_to

GPT = route_to("openai/gpt-5.2")  # $1.75 and $14 per million tokens, 128,000 tokens of reply
STRANGE = route_to("custom/strange")


def request(max_output: int | None = None, session: str = "s", prefix: Prefix = PREFIX) -> ModelRequest:
    return ModelRequest(
        call_id="c",
        session=session,
        run="r",
        turn=1,
        purpose="chat",
        prefix=prefix,
        messages=[said("hi")],
        max_output=max_output,
    )


def test_a_bid_is_for_the_whole_question_and_the_longest_reply():
    bid = bid_of(GPT, request(), tokens=1_000, configured=None)

    assert (bid.tokens, bid.longest, bid.cap, bid.sure) == (1_000, 128_000, None, True)
    assert bid.question == nanos(1_000 * 1.75 / 1e6)
    assert bid.price(100) == nanos((1_000 * 1.75 + 100 * 14) / 1e6)


@pytest.mark.parametrize(
    ("wanted", "configured", "cap"), [(500, None, 500), (None, 300, 300), (500, 300, 300), (300, 500, 300)]
)
def test_the_smaller_cap_counts(wanted: int | None, configured: int | None, cap: int):
    bid = bid_of(GPT, request(wanted), tokens=1, configured=configured)

    assert (bid.longest, bid.cap) == (cap, cap)


def test_what_is_not_known_of_a_model_is_not_made_up():
    bid = bid_of(STRANGE, request(), tokens=10, configured=None)

    assert (bid.question, bid.rate, bid.price(5)) == (None, None, None)
    assert (bid.longest, bid.sure) == (DEFAULT_OUTPUT, False)
    assert bid_of(STRANGE, request(), tokens=10, configured=50_000).longest == 50_000


def test_of_a_conversation_that_nobody_counted_each_byte_may_be_a_token():
    sizes = Sizes()

    assert sizes.most("m", request(), 1_000) > 3_700
    assert sizes.most("m", request(prefix=Prefix(system="x" * 4_000, tools=(), hash="long")), 1_000) == 2_000


def test_what_the_provider_counted_counts_and_the_rest_may_be_a_token_a_byte():
    sizes = Sizes()
    sizes.learn("m", request(), 1_000, Usage(input=1_300, output=1))

    assert sizes.most("m", request(), 1_010) == 1_340
    assert sizes.most("another", request(), 1_000) > 3_700


def test_a_conversation_that_became_shorter_is_not_the_one_that_was_counted():
    sizes = Sizes()
    sizes.learn("m", request(), 1_000, Usage(input=1_300, output=1))

    assert sizes.most("m", request(), 500) > 1_700


def test_a_count_that_is_unknown_teaches_nothing_and_old_conversations_are_forgotten():
    sizes = Sizes()
    sizes.learn("m", request(), 1_000, Usage(known=False))
    sizes.learn("m", request(session="first"), 1_000, Usage(input=1_000))
    for number in range(KEPT_SIZES):
        sizes.learn("m", request(session=str(number)), 1_000, Usage(input=1_000))
        sizes.most("m", request(session="never", prefix=Prefix(system="", tools=(), hash=str(number))), 1)

    assert sizes.most("m", request(), 1_000) > 3_700
    assert sizes.most("m", request(session="first"), 1_000) > 3_700
    assert sizes.most("m", request(session="0"), 1_000) == 1_000


def test_in_a_small_window_a_reply_may_take_a_quarter():
    small = replace(GPT, facts=replace(GPT.facts, window=8_192))

    assert [bid_of(small, request(asked), tokens=1, configured=None).cap for asked in (None, 500, 5_000)] == [
        2_048,
        500,
        2_048,
    ]
    assert bid_of(GPT, request(), tokens=1, configured=None).cap is None
