"""The contract of channels, line by line, over every channel of the table and the fakes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from hermes_agent.core.chat import Attachment, Button, Content, Conversation, Piece, Slot, SlotState
from hermes_agent.core.clock import SystemClock
from hermes_agent.gateway.channel import (
    ChannelError,
    Kind,
    MessageGone,
    NeverHere,
    NotNow,
    OutcomeUnknown,
    Part,
    Pressed,
    Said,
)
from hermes_agent.gateway.channel_runtime import Attempt, made
from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.gateway.text.cutting import size_in
from hermes_agent.host.late import late
from hermes_agent.testing.platform import TITLE, Trouble
from tests.contracts.channels import MAKERS, Ear, Stage

KEY = "s1:r1:0"
LONG, LIMIT = 40_000, 3.0
HOSTILE = ["*", "`", "|", "![a](", "$\\", "<a ", "&", "> ", "```\n", "|\n|-\n", "\u0301", "@a"]
"""Characters of a text, and the seconds of work for it, which grow as the text does; and what it is made of."""


@pytest.fixture(params=sorted(MAKERS))
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with MAKERS[request.param](tmp_path) as made:
        yield made
        await made.channel.close()


@pytest.fixture
def chat(stage: Stage) -> Conversation:
    return Conversation(platform=stage.kind.name, chat=stage.chat)


def words(text: str = "Hello", *, buttons: tuple[Button, ...] = (), slot: int = 5, answers: str = "") -> Part:
    return Part(text=text, buttons=buttons, slot=slot, answers=answers)


@pytest.fixture
async def ear(stage: Stage) -> AsyncIterator[Ear]:
    """Hears as long as the test: listening is begun again where it ends, as the gateway does."""
    ear = Ear()

    async def listening() -> None:
        while True:
            with suppress(OSError, NotNow):
                await stage.channel.listen(ear)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(listening())
        yield ear
        task.cancel()


async def eventually(ready: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not ready():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("name", sorted(CHANNELS))
def test_a_line_of_the_table_is_the_kind_of_that_name(name: str) -> None:
    kind: Kind = late(CHANNELS[name])

    assert kind.name == name
    assert kind.title
    assert kind.setup
    assert kind.abilities.longest_message > 0


async def test_what_a_person_says_is_heard(stage: Stage, ear: Ear) -> None:
    source_id = await stage.double.say("hello there", chat=stage.chat, user=stage.person, name="Ann")

    await ear.until(lambda: bool(ear.heard))
    (said,) = ear.heard
    assert isinstance(said, Said)
    assert (said.text, said.source_id, said.edited) == ("hello there", source_id, "")
    assert (said.sender.user, said.sender.name, said.sender.bot) == (stage.person, stage.name, False)
    assert (said.where.platform, said.where.chat_kind, said.where.chat) == (stage.kind.name, "dm", stage.chat)
    assert abs(said.at - time.time()) < 3600


async def test_a_group_is_told_from_a_chat_with_one(stage: Stage, ear: Ear) -> None:
    await stage.double.say("hello all", chat=stage.group, user=stage.person, group=True)

    await ear.until(lambda: bool(ear.heard))
    assert isinstance(said := ear.heard[0], Said)
    assert (said.where.chat_kind, said.where.chat) == ("group", stage.group)


async def test_a_group_is_told_with_its_name(stage: Stage, ear: Ear) -> None:
    await stage.double.say("hello", chat=stage.group, user=stage.person, group=True, thread=stage.thread)
    await stage.double.say("hello", chat=stage.chat, user=stage.person)

    await ear.until(lambda: len(ear.heard) == 2)
    assert sorted(said.title for said in ear.heard if isinstance(said, Said)) == ["", TITLE]


async def test_the_order_of_a_chat_is_kept(stage: Stage, ear: Ear) -> None:
    for number in range(5):
        await stage.double.say(f"message {number}", chat=stage.chat, user=stage.person)

    await ear.until(lambda: len(ear.heard) == 5)
    assert [said.text for said in ear.heard if isinstance(said, Said)] == [f"message {n}" for n in range(5)]


async def test_what_was_not_taken_in_is_told_again(stage: Stage, ear: Ear) -> None:
    ear.failing = 1

    source_id = await stage.double.say("hello", chat=stage.chat, user=stage.person)

    await ear.until(lambda: bool(ear.heard))
    assert isinstance(said := ear.heard[0], Said)
    assert said.source_id == source_id


async def test_a_message_that_is_told_twice_has_the_same_identity(stage: Stage, ear: Ear) -> None:
    await stage.double.say("hello", chat=stage.chat, user=stage.person)
    await stage.double.again()

    await ear.until(lambda: len(ear.heard) == 2)
    one, two = ear.heard
    assert isinstance(one, Said)
    assert isinstance(two, Said)
    assert one.source_id == two.source_id


async def test_the_platform_is_told_after_it_was_taken_in(stage: Stage, ear: Ear) -> None:
    await stage.double.say("hello", chat=stage.chat, user=stage.person)

    await eventually(lambda: stage.double.received() == 1)

    assert len(ear.heard) == 1


async def test_a_message_is_sent_with_a_receipt(stage: Stage, chat: Conversation) -> None:
    receipt = await stage.channel.send(chat, words(), KEY)

    (shown,) = stage.double.chats.of(stage.chat)
    assert (shown.id, shown.text) == (receipt, "Hello")


async def test_a_thread_is_answered_in_the_thread(stage: Stage, ear: Ear) -> None:
    if not stage.kind.abilities.threads:
        pytest.skip("the platform has no threads")
    await stage.double.say("hello", chat=stage.group, user=stage.person, group=True, thread=stage.thread)
    await ear.until(lambda: bool(ear.heard))

    await stage.channel.send(ear.heard[0].where, words(), KEY)

    assert [shown.thread for shown in stage.double.chats.of(stage.group)] == [stage.thread]


async def test_a_message_replies_to_what_it_answers(stage: Stage, ear: Ear) -> None:
    source_id = await stage.double.say("hello", chat=stage.chat, user=stage.person)
    await ear.until(lambda: bool(ear.heard))

    await stage.channel.send(ear.heard[0].where, words(answers=source_id), KEY)

    assert stage.double.chats.of(stage.chat)[0].answers == (source_id if stage.replies else "")


async def test_a_message_is_changed_where_it_stands(stage: Stage, chat: Conversation) -> None:
    if not stage.kind.abilities.edit:
        pytest.skip("the platform changes nothing")
    receipt = await stage.channel.send(chat, words(buttons=(Button(label="Yes", value="y"),)), KEY)

    await stage.channel.edit(chat, receipt, words("Other words"))
    await stage.channel.edit(chat, receipt, words("Other words"))

    (shown,) = stage.double.chats.of(stage.chat)
    assert (shown.text, shown.buttons) == ("Other words", ())


async def test_unfinished_words_are_shown_without_a_message_until_one_is_sent(stage: Stage, chat: Conversation) -> None:
    if not stage.kind.abilities.draft:
        pytest.skip("the platform shows no words without a message")
    for text in ("It", "It **works", "It **works**."):
        await stage.channel.draft(chat, text, KEY)
    assert len(stage.double.chats.drafts[stage.chat]) == 3
    assert "works" in stage.double.chats.drafts[stage.chat][-1]
    assert stage.double.chats.of(stage.chat) == []

    await stage.channel.send(chat, words("It works."), KEY)

    assert [shown.text for shown in stage.double.chats.of(stage.chat)] == ["It works."]
    assert stage.chat not in stage.double.chats.drafts


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (Trouble.BUSY, NotNow),
        (Trouble.BROKEN, NotNow),
        (Trouble.CUT, NotNow),
        (Trouble.DEAF, NotNow),
        (Trouble.GONE, NeverHere),
    ],
)
async def test_unfinished_words_that_are_not_shown_are_no_more_than_that(
    stage: Stage, chat: Conversation, trouble: Trouble, told: type[ChannelError]
) -> None:
    if not stage.kind.abilities.draft:
        pytest.skip("the platform shows no words without a message")
    stage.double.chats.order(trouble, "draft")

    with pytest.raises(told) as refused:
        await stage.channel.draft(chat, "It works", KEY)

    if trouble is Trouble.BUSY:
        assert getattr(refused.value, "retry_after", 0) == stage.busy
    await stage.channel.draft(chat, "It works", KEY)


async def test_a_message_that_is_gone_is_said_to_be(stage: Stage, chat: Conversation) -> None:
    if not stage.kind.abilities.edit:
        pytest.skip("the platform changes nothing")

    with pytest.raises(MessageGone):
        await stage.channel.edit(chat, "404", words())


async def test_a_message_is_deleted(stage: Stage, chat: Conversation) -> None:
    if not stage.kind.abilities.delete:
        pytest.skip("the platform deletes nothing")
    receipt = await stage.channel.send(chat, words(), KEY)

    await stage.channel.delete(chat, receipt)

    assert stage.double.chats.of(stage.chat) == []


async def test_a_pressed_button_is_heard(stage: Stage, chat: Conversation, ear: Ear) -> None:
    if not stage.kind.abilities.buttons:
        pytest.skip("the platform has no buttons")
    buttons = (Button(label="Yes", value="once"), Button(label="No", value="deny"))
    receipt = await stage.channel.send(chat, words("May I?", buttons=buttons, slot=77), KEY)
    assert stage.double.chats.messages[receipt].buttons == ("Yes", "No")

    await stage.double.press(receipt, 1, user=stage.presser)

    await ear.until(lambda: bool(ear.heard))
    assert isinstance(pressed := ear.heard[0], Pressed)
    assert (pressed.slot, pressed.choice, pressed.sender.user) == (77, 1, stage.presser)
    assert pressed.where.chat == stage.chat


async def test_a_file_is_sent(stage: Stage, chat: Conversation, tmp_path: Path) -> None:
    if not stage.kind.abilities.largest_file:
        pytest.skip("the platform takes no files")
    (tmp_path / "a.txt").write_bytes(b"content")
    file = Attachment(path=str(tmp_path / "a.txt"), name="a.txt", media_type="text/plain")

    await stage.channel.send(chat, Part(text="See", file=file), KEY)

    (shown,) = stage.double.chats.of(stage.chat)
    assert (shown.file, shown.text) == ("a.txt", "See")


async def test_a_file_that_is_refused_for_good_is_told_in_its_place(
    stage: Stage, chat: Conversation, tmp_path: Path
) -> None:
    """The run was told that it is on its way: nobody else says what became of it."""
    if not stage.kind.abilities.largest_file:
        pytest.skip("the platform takes no files")
    (tmp_path / "a.txt").write_bytes(b"content")
    files = (Attachment(path=str(tmp_path / "a.txt"), name="a.txt", media_type="text/plain", caption="See"),)
    slot = Slot(
        id=5,
        key=KEY,
        to=chat,
        content=Content(text="", files=files),
        session="s1",
        version=1,
        state=SlotState.PENDING,
        pieces=(),
        epoch=1,
        attempts=0,
        repeats=0,
        error="",
        at=0.0,
        answers="",
    )
    stage.double.chats.order(Trouble.GONE, "send")

    async def begin(slot: Slot, pieces: Sequence[Piece], *, repeats: int = 0) -> None:
        pass

    await Attempt(made(stage.kind, stage.channel, SystemClock()), slot, begin).show()

    (shown,) = stage.double.chats.of(stage.chat)
    assert "See" in shown.text
    assert "(The file a.txt could not be sent: " in shown.text


@pytest.mark.parametrize("trouble", [Trouble.BUSY, Trouble.BROKEN])
async def test_what_was_not_sent_may_be_tried_again(stage: Stage, chat: Conversation, trouble: Trouble) -> None:
    stage.double.chats.order(trouble, "send")

    with pytest.raises(NotNow) as refused:
        await stage.channel.send(chat, words(), KEY)

    assert stage.double.chats.of(stage.chat) == []
    assert refused.value.retry_after == (stage.busy if trouble is Trouble.BUSY else None)
    assert await stage.channel.send(chat, words(), KEY)


async def test_a_chat_that_is_gone_is_no_other_try(stage: Stage, chat: Conversation) -> None:
    stage.double.chats.order(Trouble.GONE, "send")

    with pytest.raises(NeverHere):
        await stage.channel.send(chat, words(), KEY)


async def test_a_lost_answer_leaves_the_outcome_open(stage: Stage, chat: Conversation) -> None:
    stage.double.chats.order(Trouble.DEAF, "send")

    with pytest.raises(OutcomeUnknown):
        await stage.channel.send(chat, words(), KEY)

    assert len(stage.double.chats.of(stage.chat)) == 1


async def test_the_same_key_sends_nothing_twice(stage: Stage, chat: Conversation) -> None:
    if not stage.kind.abilities.keyed:
        pytest.skip("the platform has no keys")
    stage.double.chats.order(Trouble.DEAF, "send")
    with suppress(OutcomeUnknown):
        await stage.channel.send(chat, words(), KEY)

    receipt = await stage.channel.send(chat, words(), KEY)

    assert [shown.id for shown in stage.double.chats.of(stage.chat)] == [receipt]


async def test_what_was_sent_is_found(stage: Stage, chat: Conversation) -> None:
    if not stage.kind.abilities.read_back:
        pytest.skip("the platform is not read back")
    since = time.time() - 5
    assert await stage.channel.find(chat, words(), KEY, since) is None

    receipt = await stage.channel.send(chat, words(), KEY)

    assert await stage.channel.find(chat, words(), KEY, since) == receipt
    assert await stage.channel.find(chat, words("Other words"), KEY, since) == receipt


@pytest.mark.parametrize("trouble", [Trouble.BUSY, Trouble.BROKEN, Trouble.GONE])
async def test_typing_raises_nothing_but_what_nobody_minds(stage: Stage, chat: Conversation, trouble: Trouble) -> None:
    stage.double.chats.order(trouble)
    with suppress(ChannelError):
        await stage.channel.typing(chat)
    stage.double.chats.troubles.clear()
    with suppress(ChannelError):
        await stage.channel.typing(chat)


async def test_a_good_token_has_nothing_to_say(stage: Stage) -> None:
    await stage.channel.check()


async def test_no_text_takes_long_to_be_shown(stage: Stage, chat: Conversation) -> None:
    line, size = made(stage.kind, stage.channel, SystemClock()), size_in(stage.kind.abilities.unit)
    for number, unit in enumerate(HOSTILE):
        began = time.process_time()
        parts = line.parts(Content(text=(text := f"a {unit * LONG}"[:LONG])), slot=1, to=chat)
        line.draft(text, "reads")
        await stage.channel.send(chat, parts[0], f"s1:r1:{number}")

        assert time.process_time() - began < LIMIT, unit
        assert all(size(part.text) <= stage.kind.abilities.longest_message for part in parts)


async def test_no_text_takes_long_to_be_heard(stage: Stage, ear: Ear) -> None:
    began = time.process_time()
    await stage.double.say(f"a {''.join(unit * 2000 for unit in HOSTILE)}", chat=stage.chat, user=stage.person)

    await ear.until(lambda: bool(ear.heard))
    assert isinstance(said := ear.heard[0], Said)
    assert said.text.startswith("a ***")
    assert time.process_time() - began < LIMIT
