"""What a line makes of a content: as many messages as the platform needs."""

from dataclasses import replace
from time import process_time

import pytest

from hermes_agent.core.chat import Attachment, Button, Content, Conversation
from hermes_agent.gateway.channel import Abilities, Pace
from hermes_agent.gateway.channel_runtime import MANY, REPEAT, ChannelRuntime, Pacer, made
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.clock import FakeClock

DM = Conversation(platform="fake", chat="1")
GROUP = Conversation(platform="fake", chat_kind="group", chat="1")
FILE = Attachment(path="/a", name="a.txt", caption="See")


def line(**abilities: object) -> ChannelRuntime:
    platform = FakePlatform(Abilities(longest_message=len(REPEAT) + 40, **abilities))
    return made(platform.kind(), platform.made(None), FakeClock())


def test_buttons_stand_under_the_last_piece_as_many_as_there_may_be():
    content = Content(text="a" * 30 + "\n\n" + "b" * 30, buttons=tuple(Button(label=x, value=x) for x in "xyz"))

    parts = line(buttons=2).parts(content, slot=5, to=DM)

    assert [len(part.buttons) for part in parts] == [0, 2]
    assert all(part.slot == 5 for part in parts)
    assert not line().parts(content, slot=5, to=DM)[-1].buttons


def test_a_reply_names_what_it_answers_where_others_write_too():
    content = Content(text="a" * 30 + "\n\n" + "b" * 30)

    assert [part.answers for part in line().parts(content, slot=1, to=GROUP, answers="1:7")] == ["1:7", ""]
    assert [part.answers for part in line().parts(content, slot=1, to=DM, answers="1:7")] == ["", ""]


def test_files_follow_the_words_where_they_can():
    content = Content(text="Here:", files=(FILE,))

    assert [part.file for part in line(largest_file=9).parts(content, slot=1, to=DM)] == [None, FILE]
    assert line().parts(content, slot=1, to=DM)[1].text == "See\n\n(The file a.txt cannot be sent here.)"


def test_words_at_a_file_that_are_too_many_stand_before_it():
    content = Content(text="", files=(replace(FILE, caption="a" * 30 + "\n\n" + "b" * 30),))

    parts = line(largest_file=9).parts(content, slot=1, to=DM)

    assert [(part.text[0], part.file is None) for part in parts] == [("a", True), ("b", False)]
    assert line().parts(content, slot=1, to=DM)[1].text.startswith("bbb")


def test_code_blocks_are_marked_as_the_platform_knows_them():
    text = Content(text="~~~py\nx\n~~~")

    assert line().parts(text, slot=1, to=DM)[0].text == "```py\nx\n```"
    assert line(fences=True).parts(text, slot=1, to=DM)[0].text == "~~~py\nx\n~~~"


def test_a_draft_is_one_message():
    assert line().draft("Hello", "") == "Hello"
    assert line().draft("", "terminal: ls") == "⚙ terminal: ls"
    assert line().draft("Hello", "terminal: ls") == "Hello\n\n⚙ terminal: ls"
    assert line().draft("word " * 30, "").endswith("\n…")
    assert line().draft("```py\nx = 1", "terminal: ls") == "```py\nx = 1\n```\n\n⚙ terminal: ls"
    assert len(line().draft("word " * 30, "x" * 10)) <= len(REPEAT) + 40


@pytest.mark.parametrize("name", ["a\nBcc: x.txt", "a\r\nb.txt", "\ud800.txt", "a\u2028b.txt", "a\0b.txt"])
def test_a_file_s_name_is_one_line_that_every_platform_takes(name):
    content = Content(text="", files=(replace(FILE, name=name),))
    (part,) = line(largest_file=9).parts(content, slot=1, to=DM)

    assert part.file is not None
    assert part.file.name.encode().decode().splitlines() == [part.file.name]
    assert part.file.path == FILE.path


def test_a_draft_of_a_book_takes_no_longer_than_one_of_a_page():
    began = process_time()

    shown = line().draft("Said: $a_1 $ and " * 100_000, "reads")

    assert process_time() - began < 0.5
    assert shown.startswith("Said: ")
    assert shown.endswith("\n…")


def chat(name: str = "1", kind: str = "dm") -> Conversation:
    return Conversation(platform="p", chat_kind=kind, chat=name)


async def test_a_chat_gets_one_turn_after_the_other():
    clock = FakeClock(auto=True)
    pacer = Pacer(Pace(chat=1.0, group=3.0), clock)
    for where in (chat(), chat(), chat("2"), chat("9", "group"), chat("9", "group")):
        await pacer.turn(where)

    assert clock.monotonic() == 4.0


def test_all_chats_share_the_pace_of_the_platform():
    pacer = Pacer(Pace(every=0.5), FakeClock())

    assert [pacer.reserve(chat(str(number))) for number in range(3)] == [0.0, 0.5, 1.0]


def test_a_chat_that_waits_holds_nobody_up():
    pacer = Pacer(Pace(every=0.5), FakeClock())
    pacer.hold(30.0, chat("1"))

    assert pacer.reserve(chat("1")) == 30.0
    assert pacer.reserve(chat("2")) == 0.5


def test_a_platform_can_hold_everybody_back():
    pacer = Pacer(Pace(), FakeClock())
    pacer.hold(5.0)

    assert pacer.reserve(chat()) == 5.0


async def test_chats_whose_turn_has_come_are_forgotten():
    clock = FakeClock()
    pacer = Pacer(Pace(chat=1.0), clock)
    for number in range(MANY):
        pacer.reserve(chat(str(number)))
    await clock.advance(2.0)
    pacer.reserve(chat("one more"))

    assert len(pacer._chats) == 1


async def test_a_sign_takes_a_turn_that_nobody_waits_for_and_none_of_the_chats():
    clock = FakeClock()
    pacer = Pacer(Pace(every=0.5, chat=2.0), clock)
    assert [pacer.has_room(chat()), pacer.has_room(chat("2"))] == [True, False]
    await clock.advance(0.5)
    assert pacer.reserve(chat()) == 0.5
    await clock.advance(1.0)

    assert [pacer.has_room(chat()), pacer.has_room(chat("2"))] == [False, True]
