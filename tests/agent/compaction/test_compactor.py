"""Compaction in a run: the view fits the window before each request, whatever the writer of the summary does."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from hermes_agent.agent.compaction.compactor import Room, cut, prunable
from hermes_agent.agent.session import pruned
from hermes_agent.agent.settings import CompactionSettings
from hermes_agent.core.errors import ServerFailed
from hermes_agent.core.events import Compacted, Outcome, Pinned, Undone
from hermes_agent.core.messages import Message, ModelRequest, Origin, Role, Text, ToolCall, ToolResult, said
from hermes_agent.core.section import tokens_of
from hermes_agent.providers.demo.script import Answer, Call, Heard, Say
from tests.agent.compaction.harness import LINE, Window, small
from tests.agent.harness import Harness


def reading(turns: int) -> Callable[[Heard], object]:
    """Reads `turns` files, then answers; asked for a record, writes one."""

    def script(heard: Heard) -> object:
        if "You keep the record" in heard.system:
            return Say("## Task\nRead them all. s3cret")
        calls = sum(message.role is Role.TOOL for message in heard.messages)
        del calls
        return Call("read", {"n": len(heard.prompt)}) if script.left > 0 and use() else Say("All read.")

    def use() -> bool:
        script.left -= 1
        return True

    script.left = turns
    return script


async def compactions(harness: Harness) -> list[Compacted]:
    return [entry.event for entry in await harness.log() if isinstance(entry.event, Compacted)]


async def test_a_long_run_stays_within_the_window_and_keeps_the_task(tmp_path):
    harness = small(tmp_path, reading(40))
    async with harness.open():
        ended = await harness.say("Read all the files, and never write one.")
        made = await compactions(harness)

    assert ended.outcome is Outcome.ANSWERED
    assert made
    assert all(event.after < event.before for event in made)
    for request in harness.model.requests:
        if request.purpose == "chat":
            assert any("never write one" in message.text for message in request.messages)


async def test_every_call_of_a_shortened_view_has_its_result(tmp_path):
    harness = small(tmp_path, reading(40))
    async with harness.open():
        await harness.say("Read.")

    for request in harness.model.requests:
        calls = [call.id for message in request.messages for call in message.tool_calls]
        results = [part.call_id for m in request.messages if m.role is Role.TOOL for part in m.parts]
        assert calls == results


async def test_the_log_keeps_everything(tmp_path):
    harness = small(tmp_path, reading(40))
    async with harness.open():
        await harness.say("Read.")
        results = [entry for entry in await harness.log() if entry.event.kind == "tool_ended"]

    assert len(results) == 40
    assert all(LINE in entry.event.message.parts[0].text for entry in results)


async def test_the_view_after_a_restart_is_the_one_before(tmp_path):
    harness = small(tmp_path, reading(40))
    async with harness.open():
        await harness.say("Read.")
        before = (await harness.hermes.view(harness.session)).messages
    async with harness.open():
        assert (await harness.hermes.view(harness.session)).messages == before


async def test_an_undo_behind_a_compaction_shows_the_view_of_then(tmp_path):
    harness = small(tmp_path, reading(40))
    async with harness.open():
        await harness.say("Read.")
        log = await harness.log()
        first = next(entry for entry in log if isinstance(entry.event, Compacted))
        async with harness.hermes.holding(harness.session) as journal:
            await journal.commit(Undone(to=first.number - 1))
        shown = (await harness.hermes.view(harness.session)).messages

    assert sum(message.role is Role.TOOL for message in shown) == sum(
        entry.event.kind == "tool_ended" for entry in log if entry.number < first.number
    )
    assert all(LINE in part.text for message in shown if message.role is Role.TOOL for part in message.parts)


def failing(heard: Heard) -> object:
    raise ServerFailed("down")


async def hanging_reply() -> None:
    await asyncio.Event().wait()


class Hanging(Window):
    async def ask(self, request: ModelRequest):
        self.requests.append(request)
        await hanging_reply()
        yield None


LYING = Window(lambda heard: Say("long " * 50_000))
SILENT = Window(lambda heard: Answer(pieces=(Say(" "),)))


def talking(turns: int) -> Callable[[Heard], object]:
    """Says much itself, so that pruning tool results is not enough."""
    return lambda heard: Say("word " * 300)


@pytest.mark.parametrize("writer", [LYING, Window(failing)], ids=["lying", "failing"])
async def test_a_summary_that_cannot_be_used_is_replaced_by_one_without_a_model(tmp_path, writer):
    harness = small(tmp_path, talking(0), writers=(writer,))
    async with harness.open():
        for number in range(20):
            assert (await harness.say(f"Question {number}: {'why ' * 50}")).outcome is Outcome.ANSWERED
        made = await compactions(harness)

    assert made
    assert {event.strategy for event in made} <= {"trim", "prune"}


async def test_a_writer_that_hangs_is_given_up(tmp_path):
    harness = small(tmp_path, talking(0), writers=(Hanging(talking(0)),))
    harness.seconds = 0.05
    async with harness.open():
        for number in range(20):
            await harness.say(f"Question {number}: {'why ' * 50}")

        assert "trim" in {event.strategy for event in await compactions(harness)}


async def test_the_next_writer_is_asked_where_the_first_fails(tmp_path):
    good = Window(lambda heard: Say("## Task\nTalk. s3cret"))
    harness = small(tmp_path, talking(0), writers=(Window(failing), good))
    async with harness.open():
        for number in range(20):
            await harness.say(f"Question {number}: {'why ' * 50}")
        made = await compactions(harness)

    assert {event.writer for event in made if event.strategy == "summary"} == {good.name}
    assert all("s3cret" not in event.note.text for event in made if event.note)


async def test_a_provider_that_refuses_the_length_gets_a_shorter_view(tmp_path):
    harness = small(tmp_path, talking(0), window=100_000, refuses=0)
    async with harness.open():
        for number in range(10):
            await harness.say(f"Question {number}: {'why ' * 50}")
        harness.model.refuses = 1
        ended = await harness.say("And now?")
        made = await compactions(harness)

    assert ended.outcome is Outcome.ANSWERED
    assert [event.cause for event in made] == ["refused"]


async def test_what_cannot_be_made_shorter_is_told(tmp_path):
    harness = small(tmp_path, talking(0), refuses=100)
    async with harness.open():
        ended = await harness.say("Hi")

    assert ended.outcome is Outcome.FAILED
    assert "too long" in ended.text


async def test_no_summary_is_asked_for_where_even_an_empty_one_would_gain_little(tmp_path):
    harness = small(tmp_path, lambda heard: Say("Done."), window=8_000)
    async with harness.open():
        for number in range(3):
            await harness.say(f"Question {number}?")
        ended = await harness.say("Take notes of everything: " + "word " * 4_300)
        asked = [request.purpose for request in harness.model.requests]

        assert ended.outcome is Outcome.ANSWERED
        assert not await compactions(harness)
    assert "compression" not in asked


async def test_pins_are_said_again_after_a_compaction(tmp_path):
    harness = small(tmp_path, talking(0))
    async with harness.open():
        async with harness.hermes.holding(harness.session) as journal:
            await journal.commit(Pinned(pin="1", text="never send mails"))
        for number in range(20):
            await harness.say(f"Question {number}: {'why ' * 50}")

        assert await compactions(harness)
        assert any("never send mails" in message.text for message in harness.model.requests[-1].messages)


async def test_a_conversation_that_fits_is_left_alone(tmp_path):
    harness = small(tmp_path, reading(5), window=100_000)
    async with harness.open():
        await harness.say("Read.")

        assert await compactions(harness) == []
        assert said("Read.").text in [message.text for message in harness.model.requests[-1].messages]


async def test_where_compaction_is_off_a_refused_length_is_told(tmp_path):
    harness = small(tmp_path, talking(0), refuses=100)
    harness.compaction = CompactionSettings(enabled=False)
    async with harness.open():
        ended = await harness.say("Hi")

        assert (ended.outcome, await compactions(harness)) == (Outcome.FAILED, [])


ROOM = Room(limit=1000, target=500, tail=300, head=100)


def reply(text: str = "ok", *calls: str) -> Message:
    made = tuple(ToolCall(id=call, name="read", arguments={}) for call in calls)
    return Message(role=Role.ASSISTANT, parts=(Text(text=text), *made))


def result(call: str, size: int = 400) -> Message:
    words = Text(text="r" * size, origin=Origin.TOOL)
    return Message(role=Role.TOOL, parts=(ToolResult(call_id=call, name="read", parts=(words,)),))


def weigh(messages: list[Message]) -> list[int]:
    return [tokens_of(message) for message in messages]


TURNS = st.lists(
    st.one_of(
        st.integers(1, 2000).map(lambda size: [said("u" * size)]),
        st.integers(1, 2000).map(lambda size: [reply("a" * size)]),
        st.tuples(st.integers(1, 3), st.integers(1, 4000)).map(lambda drawn: ["calls", *drawn]),
    ),
    max_size=40,
)


def conversation(turns) -> list[Message]:
    messages: list[Message] = []
    for number, turn in enumerate(turns):
        if turn[0] == "calls":
            ids = [f"{number}.{place}" for place in range(turn[1])]
            messages += [reply("", *ids), *(result(each, turn[2]) for each in ids)]
        else:
            messages += turn
    return messages


@given(TURNS, st.integers(600, 200_000), st.integers(0, 4000))
def test_no_call_is_parted_from_its_result(turns, window, prefix):
    messages = conversation(turns)
    room = Room.within(window, prefix, CompactionSettings())
    plan = cut(messages, weigh(messages), room)

    assert 0 <= plan.head <= plan.upto <= len(messages)
    rest = messages[plan.upto :]
    assert not rest or rest[0].role is not Role.TOOL
    assert all(message.role is Role.USER for message in messages[: plan.head])


@given(TURNS)
def test_pruning_makes_no_message_larger_and_is_done_once(turns):
    messages = conversation(turns)
    ids = prunable(messages, weigh(messages), before=len(messages))
    after = [pruned(message, frozenset(ids)) for message in messages]

    assert all(new <= old for new, old in zip(weigh(after), weigh(messages), strict=True))
    assert prunable(after, weigh(after), before=len(after)) == ()


def test_the_last_words_of_the_person_stay_where_there_is_room():
    messages = [said("a" * 4000), *(reply("b" * 200) for _ in range(20)), said("the last"), reply("", "1"), result("1")]

    plan = cut(messages, weigh(messages), ROOM)

    assert any(message.text == "the last" for message in messages[plan.upto :])


def test_a_short_first_message_stays_with_the_notes_beside_it():
    note = Message(role=Role.USER, parts=(Text(text="time", origin=Origin.RUNTIME),))
    messages = [said("the task"), note, *(reply("b" * 800) for _ in range(20))]

    assert cut(messages, weigh(messages), ROOM).head == 2
    assert note.is_runtime
    assert not messages[0].is_runtime


def test_a_long_first_message_is_summarised_with_the_rest():
    messages = [said("t" * 800), *(reply("b" * 800) for _ in range(20))]

    assert cut(messages, weigh(messages), ROOM).head == 0


def test_a_window_that_the_prefix_fills_still_has_some_room():
    assert Room.within(1000, 5000, CompactionSettings()).limit > 0
