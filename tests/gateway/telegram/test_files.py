"""Files go out as what they are, where Telegram takes them as such, with their words and to the last byte."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes_agent.core.inbound import Conversation
from hermes_agent.core.outbound import Attachment
from hermes_agent.gateway.channel import Channel, NeverHere, Part
from hermes_agent.gateway.channels.telegram import CHANNEL
from hermes_agent.gateway.telegram.files import MB
from tests.contracts.channels import needs
from tests.doubles.telegram import TOKEN, TelegramDouble, telegram

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
