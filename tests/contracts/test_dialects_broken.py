"""What every dialect makes of a provider that fails: one typed outcome each, with a sentence, in time."""

import asyncio
import time
from collections.abc import Callable

import pytest

from hermes_agent.core.errors import (
    AuthRefused,
    BadRequest,
    ContentRefused,
    ContextTooLong,
    EmptyReply,
    MalformedReply,
    ModelNotFound,
    OutOfCredit,
    Overloaded,
    PayloadTooLarge,
    ProviderError,
    RateLimited,
    ServerFailed,
    Stalled,
    TimedOut,
    Unreachable,
)
from hermes_agent.core.messages import CallDelta, Continuing, Reply, Retrying, Role, StopReason, TextDelta, Usage
from hermes_agent.providers.client import Client, Patience
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say, Think
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.testing.faults import (
    Empty,
    ErrorEvent,
    Hang,
    Html,
    KeepAlives,
    Malformed,
    Reset,
    Status,
    Truncate,
)
from hermes_agent.testing.scripted import tries
from tests.providers.asking import DIALECTS, Spoken, in_turn, retries, talking

EVERY = pytest.mark.parametrize("spoken", DIALECTS, ids=lambda spoken: spoken.name)
ONCE = ModelSettings(max_retries=0)
QUICK = ModelSettings(max_retries=0, stall_seconds=0.15)
WORDS = "This sentence is long enough to be cut somewhere in the middle of its words."

REFUSALS = [
    (Status(401, "bad key"), AuthRefused, "key"),
    (Status(403, "not for you"), AuthRefused, "key"),
    (Status(402, "pay first"), OutOfCredit, "credit"),
    (Status(404, "no such model"), ModelNotFound, "model.default"),
    (Status(408, "slow"), TimedOut, "again"),
    (Status(413, "too much"), PayloadTooLarge, "smaller"),
    (Status(429, "slow down"), RateLimited, "Wait"),
    (Status(500, "oops"), ServerFailed, "again"),
    (Status(502, "bad gateway", body=b"bad gateway"), ServerFailed, "bad gateway"),
    (Status(503, "busy"), Overloaded, "again"),
    (Status(529, "busy"), Overloaded, "again"),
    (Status(400, "prompt is too long: 210000 tokens > 200000 maximum"), ContextTooLong, "/compress"),
    (Status(400, "This model's maximum context length is 8192 tokens."), ContextTooLong, "/compress"),
    (Status(400, "Your credit balance is too low to access the API."), OutOfCredit, "credit"),
    (Status(400, "temperature must be a number"), BadRequest, "temperature"),
    (Status(418, "teapot"), BadRequest, "teapot"),
    (Status(301, "moved", body=b"moved", headers={"location": "https://elsewhere"}), BadRequest, "https://elsewhere"),
    (Html(), MalformedReply, "web page"),
    (Html(code=502), ServerFailed, "web page"),
    (Html(code=404), MalformedReply, "web page"),
    (Status(200, body=b'{"object": "a document"}'), MalformedReply, "one document"),
    (Status(200, body=b'{"error": {"message": "Your credit balance is too low"}}'), OutOfCredit, "credit"),
]


@EVERY
async def test_a_reply_that_does_not_end_is_cut_off(spoken: Spoken):
    async with talking(spoken, [Say("x" * 100_000)]) as talk:
        line = talk.broker._router.primary
        plan = line.plan(talk.request())
        client = Client(line._chain.http, line.route, line._dialect, largest=10_000)
        decoder = line._dialect.decoder(line.route, set())
        stream = client.stream(
            plan.compiler.write(talk.request(), 100), decoder, Patience(left=10.0, stall=5.0, now=0.0)
        )

        with pytest.raises(MalformedReply, match="more than 0 MB long"):
            async for _ in stream:
                pass

    assert len(decoder.words) < 20_000


@EVERY
@pytest.mark.parametrize(("fault", "kind", "words"), REFUSALS, ids=lambda value: getattr(value, "__name__", None))
async def test_a_refusal_is_a_typed_outcome_with_a_sentence(
    spoken: Spoken, fault: Status | Html, kind: type[ProviderError], words: str
):
    async with talking(spoken, lambda _: fault, settings=ONCE) as talk:
        with pytest.raises(ProviderError) as caught:
            await talk.ask()
    error = caught.value
    assert type(error) is kind
    assert words in str(error)
    assert str(error).startswith(f"{spoken.model} at 127.0.0.1")
    assert (error.provider, f"{error.provider}/{error.model}") == (spoken.name.split("_")[0], spoken.model)
    assert [row.outcome for row in talk.book.settled] == [kind.__name__]


@EVERY
async def test_a_wrong_key_is_named_and_never_shown(spoken: Spoken):
    async with talking(spoken, [Say("Hi")], keys=("another-key",), settings=ONCE) as talk:
        with pytest.raises(AuthRefused) as caught:
            await talk.ask()
    assert "test-key" not in str(caught.value)
    assert talk.broker._router.primary.route.vendor.key_names[0] in str(caught.value)


BREAKS = [
    (Reset(), Unreachable),
    (Truncate(), Unreachable),
    (Truncate(clean=True), MalformedReply),
    (Malformed(), MalformedReply),
    (Malformed(data=b"data: <xml/>\n\n"), MalformedReply),
    (Malformed(data=b'data: {"choices": 3, "type": 7}\n\n'), MalformedReply),
    (Malformed(data=b"data: \xff\xfe\n\n"), MalformedReply),
    (ErrorEvent(), Overloaded),
]


@EVERY
@pytest.mark.parametrize(("fault", "kind"), BREAKS, ids=lambda value: getattr(value, "__name__", None))
async def test_a_stream_that_breaks_keeps_what_had_arrived(spoken: Spoken, fault: Reset, kind: type[ProviderError]):
    broken = type(fault)(**{**_fields(fault), "reply": Answer(pieces=(Say(WORDS),)), "after": 5})
    async with talking(spoken, lambda _: broken, settings=ONCE) as talk:
        heard = []
        with pytest.raises(ProviderError) as caught:
            async for item in talk.broker.ask(talk.request()):
                heard.append(item)  # noqa: PERF401 - the list must keep what came before the error
    assert type(caught.value) is kind
    assert caught.value.partial
    assert caught.value.partial == "".join(item.text for item in heard if isinstance(item, TextDelta))
    assert WORDS.startswith(caught.value.partial)
    (row,) = talk.book.settled
    assert (row.usage.known, row.cost) == (False, None)


MIDWAY = [Reset, Truncate, lambda **fields: Truncate(clean=True, **fields), Malformed, ErrorEvent]


@EVERY
@pytest.mark.parametrize("fault", MIDWAY)
async def test_a_text_that_breaks_off_is_gone_on_with(spoken: Spoken, fault: Callable[..., Reset]):
    broken = fault(reply=Answer(pieces=(Say(WORDS),), pace=Pace(characters=10, between=0.003)), after=8)
    async with talking(spoken, in_turn(broken, lambda heard: Say(rest_of(heard, WORDS)))) as talk:
        heard = await talk.listen()
    assert [type(item) for item in heard if isinstance(item, (Retrying, Continuing))] == [Continuing]
    words = "".join(item.text for item in heard if isinstance(item, TextDelta))
    assert words == heard[-1].message.text == WORDS
    assert [row.call_id for row in talk.book.opened] == ["call1", "call1.2"]


@EVERY
@pytest.mark.parametrize("fault", MIDWAY)
async def test_a_few_words_that_break_off_are_void_and_said_anew(spoken: Spoken, fault: Callable[..., Reset]):
    broken = fault(reply=Answer(pieces=(Say("Not many words."),), pace=Pace(characters=3)), after=4)
    async with talking(spoken, in_turn(broken, Say("Whole."))) as talk:
        heard = await talk.listen()
    (again,) = retries(heard)
    words = "".join(item.text for item in heard[heard.index(again) :] if isinstance(item, TextDelta))
    assert words == heard[-1].message.text == "Whole."


@pytest.mark.parametrize("spoken", [each for each in DIALECTS if each.name != "gemini"], ids=lambda spoken: spoken.name)
async def test_a_call_that_breaks_off_is_never_gone_on_with(spoken: Spoken):
    """Gemini sends a call whole."""
    pieces = (Say(WORDS), Call("read_file", {"path": "a" * 900}))
    broken = Reset(reply=Answer(pieces=pieces, pace=Pace(characters=20, between=0.003)), after=20)
    async with talking(spoken, in_turn(broken, Say("Whole."))) as talk:
        heard = await talk.listen()
    assert any(isinstance(item, CallDelta) for item in heard)
    assert len(retries(heard)) == 1
    assert heard[-1].message.text == "Whole."


@EVERY
async def test_a_text_whose_rest_never_comes_is_not_taken_for_the_whole(spoken: Spoken):
    broken = Reset(reply=Answer(pieces=(Say(WORDS),), pace=Pace(characters=10, between=0.003)), after=8)
    async with talking(spoken, in_turn(broken, Empty())) as talk:
        with pytest.raises(EmptyReply) as caught:
            await talk.ask()
    assert WORDS.startswith(caught.value.partial)
    assert len(caught.value.partial) >= 20
    assert len(talk.server.exchanges) == 3


@EVERY
async def test_a_retry_after_is_honoured(spoken: Spoken):
    async with talking(spoken, [tries(Status(429, headers={"retry-after": "7"}), Say("Now."))]) as talk:
        heard = await talk.listen()
    assert [item.delay for item in retries(heard)] == talk.broker._clock.slept == [7.0]


@EVERY
async def test_the_number_of_retries_is_bounded(spoken: Spoken):
    async with talking(spoken, lambda _: Status(500), settings=ModelSettings(max_retries=2)) as talk:
        with pytest.raises(ServerFailed):
            await talk.ask()
    assert len(talk.server.exchanges) == len(talk.book.settled) == 3
    assert all(row.usage.known and row.cost == 0.0 for row in talk.book.settled)


@EVERY
async def test_an_empty_reply_is_asked_for_once_more(spoken: Spoken):
    async with talking(spoken, lambda _: Empty()) as talk:
        with pytest.raises(EmptyReply):
            await talk.ask()
    assert len(talk.server.exchanges) == 2


@EVERY
async def test_thinking_that_uses_the_output_limit_up_says_so(spoken: Spoken):
    answer = Answer(pieces=(Think("for ever"),), stop=StopReason.LENGTH)
    async with talking(spoken, lambda _: answer, settings=ONCE) as talk:
        with pytest.raises(EmptyReply, match="output limit up by thinking"):
            await talk.ask()


@EVERY
async def test_a_refusal_without_a_word_is_no_reply(spoken: Spoken):
    async with talking(spoken, lambda _: Answer(stop=StopReason.REFUSED)) as talk:
        with pytest.raises(ContentRefused):
            await talk.ask()
    assert len(talk.server.exchanges) == 1


@EVERY
@pytest.mark.parametrize("fault", [KeepAlives(), Hang(), Hang(headers=False)], ids=repr)
async def test_signs_of_life_without_content_are_a_stall(spoken: Spoken, fault: Hang):
    async with talking(spoken, lambda _: fault, settings=QUICK) as talk:
        with pytest.raises(Stalled, match="stall_seconds"):
            await talk.ask()


@EVERY
async def test_keep_alives_before_an_answer_do_no_harm(spoken: Spoken):
    async with talking(spoken, [KeepAlives(reply=Answer(pieces=(Say("At last."),)), after=1, count=5)]) as talk:
        assert (await talk.ask()).message.text == "At last."


@EVERY
@pytest.mark.parametrize("fault", [KeepAlives(), Hang(), Hang(headers=False)], ids=repr)
async def test_the_deadline_ends_a_hanging_call_without_another_attempt(spoken: Spoken, fault: Hang):
    async with talking(spoken, lambda _: fault) as talk:
        began = time.monotonic()
        with pytest.raises(TimedOut):
            await talk.ask(deadline=began + 0.2)
    assert time.monotonic() - began < 5.0
    assert len(talk.server.exchanges) <= 1  # A busy machine may not have sent it by then.


@EVERY
async def test_nothing_is_sent_after_the_deadline(spoken: Spoken):
    async with talking(spoken, [Say("Hi")]) as talk:
        with pytest.raises(TimedOut):
            await talk.ask(deadline=time.monotonic() - 1)
    assert talk.server.exchanges == talk.book.opened == []


@EVERY
async def test_closing_the_iterator_closes_the_connection(spoken: Spoken):
    async with talking(spoken, lambda _: Hang(reply=Answer(pieces=(Say(WORDS),)), after=5)) as talk:
        stream = talk.broker.ask(talk.request())
        async for item in stream:
            if isinstance(item, TextDelta):
                break
        await stream.aclose()
        over = await asyncio.to_thread(talk.server.exchanges[0].over.wait, 2)
    assert over
    assert talk.server.exchanges[0].abandoned
    assert [(row.outcome, row.usage.known) for row in talk.book.settled] == [("stopped", False)]


@EVERY
async def test_cancelling_a_call_closes_the_connection_and_is_no_error_of_the_provider(spoken: Spoken):
    async with talking(spoken, lambda _: Hang(headers=False)) as talk:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.15):
                await talk.ask()
        over = await asyncio.to_thread(talk.server.exchanges[0].over.wait, 2)
    assert over
    assert [(row.outcome, row.usage.known) for row in talk.book.settled] == [("stopped", False)]


@EVERY
async def test_a_connection_serves_several_questions(spoken: Spoken):
    async with talking(spoken, [Say("One."), Say("Two.")]) as talk:
        assert isinstance(await talk.ask(), Reply)
        talk.say("More?")
        assert isinstance(await talk.ask(), Reply)
        pool = talk.broker._router.primary._chain.http.client(talk.server.url)._transport.connections
        connections = [*pool.free, *pool.busy]
    assert len(connections) == 1


def rest_of(heard: Heard, whole: str) -> str:
    """What is missing of a text that the conversation says was broken off."""
    said = next(message.text for message in reversed(heard.messages) if message.role is Role.ASSISTANT)
    assert whole.startswith(said)
    return whole[len(said) :]


def _fields(fault):
    return {name: getattr(fault, name) for cls in type(fault).__mro__ for name in getattr(cls, "__slots__", ())}


@EVERY
@pytest.mark.parametrize("count", [-1, 2_000_000_000, 10**18, 10**30])
async def test_a_count_of_tokens_that_can_be_none_is_unknown(spoken: Spoken, count: int):
    """The limits of money and tokens go by it, and the log has to hold it."""
    answer = Answer(pieces=(Say("Hello."),), usage=Usage(input=10, output=count))
    async with talking(spoken, [answer]) as talk:
        reply = await talk.ask()

    assert reply.message.text == "Hello."
    assert not reply.usage.known
    assert reply.cost is None


@EVERY
@pytest.mark.parametrize(("said", "words"), [("3600", "1 h"), ("9000", "2 h"), ("90", "90 s"), ("300", "5 min")])
async def test_a_long_rest_that_the_provider_wants_is_named(spoken: Spoken, said: str, words: str):
    async with talking(spoken, [Status(429, headers={"retry-after": said})], settings=ONCE) as talk:
        with pytest.raises(RateLimited, match=f"It asks to be left alone for {words}."):
            await talk.ask()
