"""A message as arguments of the Bot API: its buttons, what it answers, and in which life of a group it stands."""

from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.chat import Attachment, Button, Conversation
from hermes_agent.gateway.channel import Channel, MessageGone, NeverHere, Part
from hermes_agent.gateway.channels.telegram import CHANNEL
from hermes_agent.gateway.telegram.writing import (
    MB,
    UNMEANT,
    draft_id,
    formatted,
    keyboard,
    message_at,
    place,
    receipt_of,
    reply_to,
    unmeant,
)
from tests.contracts.channels import needs
from tests.doubles.telegram import TOKEN, TelegramDouble, telegram
from tests.doubles.telegram_words import unformatted

GROUP = Conversation(platform="telegram", chat_kind="group", chat="-1", thread="4")


@pytest.mark.parametrize(("label", "rows"), [("Yes", [2]), ("Yes, for this conversation", [1, 1])])
def test_narrow_buttons_share_a_row(label: str, rows: list[int]):
    part = Part(text="May I?", buttons=(Button(label=label, value="y"), Button(label="No", value="n")), slot=3)
    shown = keyboard(part)["reply_markup"]["inline_keyboard"]

    assert [len(row) for row in shown] == rows
    assert [key["callback_data"] for row in shown for key in row] == ["3.0", "3.1"]
    assert keyboard(Part(text="Done")) == {}


def test_a_message_is_changed_in_the_group_in_which_it_stands_alone():
    old, new = receipt_of(GROUP, "-1", {"message_id": 5}), receipt_of(GROUP, "-100", {"message_id": 5})
    assert (old, new) == ("5", "-100:5")

    assert message_at(GROUP, "-100", new) == {"chat_id": "-100", "message_id": 5}
    with pytest.raises(MessageGone, match="was before"):
        message_at(GROUP, "-100", old)
    with pytest.raises(MessageGone, match="no message x"):
        message_at(GROUP, "-1", "x")


@pytest.mark.parametrize(("answers", "number"), [("-1:7", 7), ("7", 7), ("-9:7", 0), ("", 0), ("x", 0)])
def test_what_stands_elsewhere_is_not_replied_to(answers: str, number: int):
    found = reply_to(Part(text="x", answers=answers), "-1")

    assert found.get("reply_parameters", {}).get("message_id", 0) == number


def test_a_topic_is_named_and_a_draft_keeps_its_number():
    assert place(GROUP, "-1") == {"chat_id": "-1", "message_thread_id": 4}
    assert draft_id("k") == draft_id("k") > 0


CHAT = Conversation(platform="telegram", chat="1")
PNG = b"\x89PNG\r\n"
MP4 = b"\0\0\0\x18ftypmp42"


@pytest.fixture
async def double() -> AsyncIterator[TelegramDouble]:
    async with telegram() as made:
        yield made


@pytest.fixture
async def channel(double: TelegramDouble, tmp_path: Path) -> AsyncIterator[Channel]:
    made = needs(tmp_path, {"api_url": double.url}, TOKEN)
    yield CHANNEL.make(made)
    await made.http.close()


def part(folder: Path, name: str, kind: str, content: bytes, text: str = "") -> Part:
    (folder / name).write_bytes(content)
    return Part(text=text, file=Attachment(path=str(folder / name), name=name, media_type=kind))


@pytest.mark.parametrize(
    ("name", "kind", "content", "method"),
    [
        ("a.png", "image/png", PNG, "sendPhoto"),
        ("a.jpg", "image/jpeg", b"\xff\xd8\xff", "sendPhoto"),
        ("a.gif", "image/gif", b"GIF89a", "sendAnimation"),
        ("a.mp4", "video/mp4", MP4, "sendVideo"),
        ("a.mp3", "audio/mpeg", b"ID3", "sendAudio"),
        ("a.m4a", "audio/mp4a-latm", MP4, "sendAudio"),
        ("a.ogg", "audio/ogg", b"OggS", "sendVoice"),
        ("a.webm", "video/webm", b"\x1aE", "sendDocument"),
        ("a.pdf", "application/pdf", b"%PDF", "sendDocument"),
        ("liar.png", "image/png", b"<svg", "sendDocument"),
        ("large.png", "image/png", PNG + bytes(10 * MB), "sendDocument"),
    ],
)
async def test_a_file_goes_out_as_what_it_is(
    double: TelegramDouble, channel: Channel, tmp_path: Path, name: str, kind: str, content: bytes, method: str
):
    receipt = await channel.send(CHAT, part(tmp_path, name, kind, content), "k")

    assert double.sent_files == [(method, name, content)]
    assert [(shown.id, shown.file) for shown in double.chats.of("1")] == [(receipt, name)]


async def test_words_at_a_file_are_formatted(double: TelegramDouble, channel: Channel, tmp_path: Path):
    await channel.send(CHAT, part(tmp_path, "a.png", "image/png", PNG, "**Here** it is."), "k")

    assert double.chats.of("1")[0].text == "Here it is."
    assert "MarkdownV2" in double.chats.of("1")[0].written


async def test_a_file_that_is_too_large_is_refused_for_good(double: TelegramDouble, channel: Channel, tmp_path: Path):
    with pytest.raises(NeverHere, match="Too Large"):
        await channel.send(CHAT, part(tmp_path, "a.bin", "application/x-thing", bytes(51 * MB)), "k")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. Done!", r"1\. Done\!"),
        ("**bold** and *it* and _it_ and ~~gone~~", "*bold* and _it_ and _it_ and ~gone~"),
        ("__heavy__", "*heavy*"),
        ("# A **title**", "*A title*"),
        ("- one\n  - two", "• one\n  • two"),
        ("> said.", r">said\."),
        ("`a_b` and ``c`d``", r"`a_b` and `c\`d`"),
        ("[the *manual*](https://e.org/a_(b))", r"[the _manual_](https://e.org/a_(b\))"),
        ("[no address]()", "no address"),
        ("[Ann](tg://user?id=1) and [b](TG:x)", r"Ann \(tg://user?id\=1\) and b \(TG:x\)"),
        ("```python\nx = `1`\n```", "```python\nx = \\`1\\`\n```"),
        ("```\nnever closed", "```\nnever closed\n```"),
        ("````md\n```py\nx\n```\n````", "```md\n\\`\\`\\`py\nx\n\\`\\`\\`\n```"),
        ("1. a\n   ~~~c++ x=1\n   b\n   ~~~", "1\\. a\n```c++\nb\n```"),
        ("**a *b* c**", "*a _b_ c*"),
        ("2 * 3 * 4 and snake_case_name", r"2 \* 3 \* 4 and snake\_case\_name"),
        ("ask @everybody or a@b.org", rf"ask {UNMEANT}everybody or a@b\.org"),
    ],
)
def test_formatting_is_kept_and_every_other_sign_escaped(text: str, expected: str):
    assert formatted(text) == expected


def test_names_that_leave_no_room_for_a_sign_more_get_another_sign():
    text = "@ann " * 800

    shown = unformatted(formatted(text))
    assert len(shown) <= 4096
    assert "@" not in shown
    assert unmeant("ask @ann") == f"ask {UNMEANT}ann"
    assert "@" not in unmeant(text)
    assert UNMEANT not in formatted("```\n@cached\n```")


@given(st.text(alphabet=st.sampled_from("ab _*[]()~`>#+-=|{}.!\\\n@1"), max_size=80))
def test_whatever_is_written_is_understood(text: str):
    shown = unformatted(formatted(text))

    assert shown.count("a") + shown.count("b") <= text.count("a") + text.count("b") + 8


def test_marks_of_code_without_an_end_take_no_time():
    began = perf_counter()

    assert formatted("x" + "`" * 4001 + "a") == "x" + "\\`" * 4001 + "a"

    assert perf_counter() - began < 1
