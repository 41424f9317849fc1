"""The book, the money, the memory of the broker."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import LimitReached, Unreachable
from hermes_agent.core.messages import File, Image, Message, Origin, Role, Text, ToolCall, ToolResult, Usage, said
from hermes_agent.core.spending import nanos
from hermes_agent.host.http import Http
from hermes_agent.providers.broker import KEPT, LEFT_OUT, LONGEST, Broker, shrunk
from hermes_agent.providers.demo.script import Answer, Say
from hermes_agent.providers.routing.chain import single
from hermes_agent.providers.routing.endpoint import KEPT_CONVERSATIONS
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.testing.faults import Reset, Status
from tests.providers.asking import DIALECTS, Book, Talk, in_turn, route_to, talking

CHAT = DIALECTS[0]

FIRST_REQUEST = """
import asyncio, sys
from hermes_agent.testing.model_servers import openai_model
from hermes_agent.providers.demo.script import Say
from tests.providers.asking import DIALECTS, talking

async def main():
    async with talking(DIALECTS[0], [Say("Hi")]) as talk:
        await talk.ask()

asyncio.run(main())
ours = "hermes_agent.providers.dialects."
print(*sorted(name for name in sys.modules if name.startswith(ours)))
print(*sorted({"openai", "anthropic", "pydantic"} & set(sys.modules)))
"""


class WatchedBook(Book):
    """Notes what `look` sees when a row is opened."""

    def __init__(self, look: Callable[[], object]) -> None:
        super().__init__()
        self.seen: list[object] = []
        self._look = look

    async def open(self, call):
        self.seen.append(self._look())
        return await super().open(call)


async def test_the_row_is_in_the_book_before_the_request_is_on_the_wire():
    async with talking(CHAT, [Say("Hi")]) as talk:
        book = WatchedBook(lambda: len(talk.server.exchanges))
        talk.enter_into(book)
        await talk.ask()
    (row,) = book.opened
    assert book.seen == [0]
    assert (row.call_id, row.purpose, row.messages, row.prefix) == ("call1", "chat", 1, "0123456789abcdef")


async def test_the_book_agrees_with_the_reply():
    usage = Usage(input=1_000, output=100, cached=500)
    async with talking(CHAT, [Answer(pieces=(Say("Hi"),), usage=usage)]) as talk:
        reply = await talk.ask()
    (row,) = talk.book.settled
    assert (row.outcome, row.usage, row.cost) == ("ok", reply.usage, reply.cost)
    assert row.cost == pytest.approx((500 * 1.75 + 500 * 0.175 + 100 * 14) / 1e6)
    assert talk.book.granted[0].money > nanos(row.cost)


async def test_money_caps_the_reply_and_stops_what_cannot_be_paid():
    async with talking(CHAT, [Say("Hi")]) as talk:
        talk.book.money = 0.01
        await talk.ask()
        talk.book.money = 0.00001
        with pytest.raises(LimitReached, match="money limit"):
            await talk.ask()
    assert len(talk.server.exchanges) == 1
    assert 0 < talk.server.exchanges[0].body["max_completion_tokens"] < 0.01 / 14 * 1e6
    assert talk.book.granted[0].money <= nanos(0.01)


async def test_each_attempt_is_reserved_and_settled_by_itself():
    async with talking(CHAT, in_turn(Reset(), Status(503), Say("Hi"))) as talk:
        await talk.ask()
    assert [call.call_id for call in talk.book.opened] == ["call1", "call1.2", "call1.3"]
    broken, refused, answered = talk.book.settled
    assert (broken.usage.known, broken.cost) == (False, None)
    assert (refused.usage, refused.cost) == (Usage(), 0.0)
    assert answered.cost > 0


async def test_what_never_left_this_machine_costs_nothing():
    book, http = Book(), Http()
    route = route_to("openai/gpt-5.2", "http://127.0.0.1:9/v1")
    broker = Broker(single(route, http, SystemClock(), ModelSettings(max_retries=0)), book)
    with pytest.raises(Unreachable):
        await Talk(broker=broker, server=_Nobody(), book=book).ask()
    assert [(call.outcome, call.usage, call.cost) for call in book.settled] == [("Unreachable", Usage(), 0.0)]
    await http.close()


async def test_what_the_provider_counted_is_what_the_next_question_is_taken_for():
    counted = Answer(pieces=(Say("Hi"),), usage=Usage(input=400, output=1))
    async with talking(CHAT, [counted, counted]) as talk:
        await talk.ask()
        talk.say("x")
        await talk.ask()
    first, second = (call.bid.tokens for call in talk.book.opened)
    assert first < 400 < second < 400 + 4 * 100


async def test_earlier_messages_are_not_compiled_again():
    async with talking(CHAT, lambda _: Say("Hi")) as talk:
        for place in range(3):
            talk.say(f"question {place}")
            await talk.ask()
        compiler = next(iter(talk.broker._router.primary._compilers.values()))[0]
        kept = list(compiler._encoded)
        talk.say("one more")
        await talk.ask()
    assert all(old is new for old, new in zip(kept[:-1], compiler._encoded, strict=False))
    assert len(compiler._encoded) > len(kept)


async def test_only_so_many_conversations_are_kept():
    async with talking(CHAT, lambda _: Say("Hi")) as talk:
        for place in range(KEPT_CONVERSATIONS + 5):
            await _ask_in(talk, f"session{place}")
    assert len(talk.broker._router.primary._compilers) == KEPT_CONVERSATIONS


async def test_a_server_that_is_not_there_is_unreachable_and_says_where():
    settings = ModelSettings(max_retries=0)
    route = route_to("openai/gpt-5.2", "http://127.0.0.1:9/v1")
    http = Http()
    broker = Broker(single(route, http, SystemClock(), settings), Book())
    talk = Talk(broker=broker, server=_Nobody(), book=Book())
    with pytest.raises(Unreachable, match=r"openai/gpt-5\.2 at 127\.0\.0\.1:9 .*model\.base_url") as caught:
        await talk.ask()
    assert caught.value.__notes__ == ["no attempt is left (`model.max_retries`)"]
    await http.close()


async def test_a_name_and_a_window_are_known_before_the_first_question():
    async with talking(CHAT, []) as talk:
        assert (talk.broker.name, talk.broker.window) == ("openai/gpt-5.2", 400_000)


def test_the_first_request_of_one_vendor_loads_no_other_dialect():
    done = subprocess.run(
        [sys.executable, "-c", FIRST_REQUEST],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    loaded, libraries = done.stdout.splitlines()
    assert loaded.split() == ["hermes_agent.providers.dialects.openai_chat"]
    assert libraries == ""


async def _ask_in(talk: Talk, session: str) -> None:
    messages = [said("Hi"), Message(role=Role.ASSISTANT, parts=(Text(text="Hi"),)), said("Go on")]
    async for _ in talk.broker.ask(talk.request(session=session, messages=messages)):
        pass


class _Nobody:
    exchanges: tuple[object, ...] = ()


LONG = ToolResult(call_id="1", name="read_file", parts=(Text(text="word " * 500, origin=Origin.TOOL),))
SHORT = ToolResult(call_id="2", name="read_file", parts=(Text(text="ok", origin=Origin.TOOL),))


def answers(*results: ToolResult) -> Message:
    return Message(role=Role.TOOL, parts=results)


def test_long_results_of_old_turns_are_cut_and_say_so():
    messages = [said("Hi"), answers(LONG), answers(SHORT), *[said(f"{n}") for n in range(KEPT[0])]]
    small = shrunk(messages, 1, len(messages))
    (part,) = small[1].parts[0].parts
    assert part == Text(text=LONG.text[:LONGEST] + LEFT_OUT, origin=Origin.TOOL)
    assert small[2] is messages[2]
    assert messages[1].parts[0] is LONG


def test_the_last_messages_stay_as_they_are_and_fewer_of_them_the_second_time():
    messages = [answers(LONG) for _ in range(20)]
    for times, kept in enumerate(KEPT, 1):
        small = shrunk(messages, times, len(messages))
        assert all(old is new for old, new in zip(messages[-kept:], small[-kept:], strict=True))
        assert small[-kept - 1] is not messages[-kept - 1]


def test_messages_after_the_shrinking_are_not_touched():
    messages = [answers(LONG) for _ in range(20)]
    assert shrunk(messages, 2, 10)[8:] == messages[8:]
    assert shrunk(messages, 0, 20) == messages


def test_pictures_and_files_become_a_line_and_calls_stay():
    call = ToolCall(id="1", name="t", arguments={})
    old = Message(role=Role.USER, parts=(Image(data="AAAA"), File(name="a.pdf", media_type="application/pdf"), call))
    (small, *_) = shrunk([old, *[said("x")] * KEPT[0]], 1, KEPT[0] + 1)
    picture, file, kept = small.parts
    assert "picture" in picture.text
    assert "a.pdf" in file.text
    assert kept is call
