"""The Discord channel beyond the contract: refusals, files, presses, threads."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

import pytest

from hermes_agent.core.chat import Attachment, Button, Conversation
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channel import (
    ChannelError,
    Heard,
    MessageGone,
    NeverHere,
    NotNow,
    OutcomeUnknown,
    Part,
    Said,
    TokenRefused,
)
from hermes_agent.gateway.channels.discord import CHANNEL, meaning
from hermes_agent.gateway.service import Answer
from hermes_agent.testing.platform import Trouble
from tests.contracts.channels import needs
from tests.doubles.discord import discord_platform

ANN = Conversation(platform="discord", chat="1")


@pytest.fixture
async def platform():
    async with discord_platform() as made:
        yield made


@pytest.fixture
async def channel(platform, tmp_path):
    given = needs(tmp_path, {"api": f"{platform.url}/api/v10"})
    made = CHANNEL.make(given)
    yield made
    await made.close()
    await given.http.close()


@asynccontextmanager
async def listening(channel, found: list[Heard], word: str = "noted"):
    async def hear(heard: Heard) -> str:
        found.append(heard)
        return word

    task = asyncio.create_task(channel.listen(hear))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, NotNow, TokenRefused):
            await task


async def until(ready) -> None:
    async with asyncio.timeout(10):
        while not ready():
            await asyncio.sleep(0.01)


async def test_a_revoked_token_is_a_sentence(platform, channel):
    platform.unauthorized = True

    with pytest.raises(TokenRefused, match="token"):
        await channel.listen(lambda heard: None)
    with pytest.raises(ChannelError, match="token"):
        await channel.check()


async def test_what_may_not_answer_a_message_is_sent_all_the_same(platform, channel):
    platform.unread.add("1")

    await channel.send(ANN, Part(text="Yes.", answers="55"), "k")

    assert [(shown.text, shown.answers) for shown in platform.chats.of("1")] == [("Yes.", "")]


@pytest.mark.parametrize(("word", "kind"), [("noted", 4), ("", 6)])
async def test_who_pressed_is_told_alone(platform, channel, word, kind):
    receipt = await channel.send(ANN, Part(text="May I?", buttons=(Button(label="Yes", value="y"),) * 7, slot=1), "k")
    async with listening(channel, [], word):
        await platform.press(receipt, 6)
        await until(lambda: platform.callbacks)

    assert platform.callbacks[0]["type"] == kind
    assert [len(row["components"]) for row in platform.bodies[receipt]["components"]] == [5, 2]


async def test_nobody_is_notified_by_what_it_says(platform, channel):
    await channel.send(ANN, Part(text="@everyone <@7>"), "k")

    assert json.loads(platform.chats.of("1")[0].written)["allowed_mentions"] == {"parse": []}


async def test_a_file_is_fetched_without_the_token(platform, channel):
    platform.files["a"] = b"content"
    found: list[Heard] = []
    async with listening(channel, found):
        await platform.say("", attachments=[{"url": f"{platform.url}/files/{name}"} for name in "ab"])
        await until(lambda: found)

    said = found[0]
    assert isinstance(said, Said)
    assert await channel.fetch(said.media[0], 10**9) == b"content"
    with pytest.raises(NeverHere, match="404"):
        await channel.fetch(said.media[1], 10**9)


async def test_a_file_goes_with_its_name_and_bytes(platform, channel, tmp_path):
    (tmp_path / "a").write_bytes(b"\0\r\n--content")

    await channel.send(ANN, Part(text="See", file=Attachment(path=str(tmp_path / "a"), name='a "b".bin')), "k")

    assert platform.files == {"a _b_.bin": b"\0\r\n--content"}


@pytest.mark.parametrize(("kind", "told"), [("image/png", "image/png"), ("x\r\nEvil: 1", "application/octet-stream")])
async def test_a_file_goes_as_what_it_is(platform, channel, tmp_path, kind, told):
    (tmp_path / "a").write_bytes(b"content")
    file = Attachment(path=str(tmp_path / "a"), name="a", media_type=kind)

    await channel.send(ANN, Part(text="", file=file), "k")

    assert json.loads(platform.chats.of("1")[0].written)["type"] == told


@pytest.mark.parametrize(("text", "size"), [("x" * 2001, 0), ("", 0), ("x", 10_500_000)])
async def test_what_discord_does_not_take_is_refused_for_good(channel, tmp_path, text, size):
    (tmp_path / "a").write_bytes(bytes(size))
    file = Attachment(path=str(tmp_path / "a"), name="a.bin") if size else None

    with pytest.raises(NeverHere, match="refuses"):
        await channel.send(ANN, Part(text=text, file=file), "k")


async def test_a_file_that_is_not_there_is_said_so(channel, tmp_path):
    with pytest.raises(NeverHere, match="none cannot be read"):
        await channel.send(ANN, Part(text="", file=Attachment(path=str(tmp_path / "none"), name="none")), "k")


async def test_a_channel_that_it_may_not_see_is_no_thread(platform, channel):
    found: list[Heard] = []
    async with listening(channel, found):
        platform.chats.order(Trouble.GONE, "channels/9")
        await platform.say("hello", chat="9", group=True)
        await until(lambda: found)

    said = found[0]
    assert isinstance(said, Said)
    assert (said.where.chat, said.where.thread) == ("9", "")


async def test_an_answer_that_is_none_leaves_it_open(platform, channel):
    platform.chats.order(Trouble.GARBLED, "send")

    with pytest.raises(OutcomeUnknown):
        await channel.send(ANN, Part(text="x"), "k")


async def test_typing_is_shown(platform, channel):
    await channel.typing(ANN)

    assert platform.chats.typing == ["1"]
    assert await channel.find(ANN, Part(text="x"), "k", 0) is None


def test_a_token_is_needed(tmp_path):
    with pytest.raises(ConfigError, match="DISCORD_BOT_TOKEN"):
        CHANNEL.make(needs(tmp_path, {}, secret=""))


async def test_who_is_called_by_the_role_that_a_server_made_is_called(platform, channel):
    found: list[Heard] = []
    async with listening(channel, found):
        await platform.say("<@&6> hello", group=True, mention_roles=["6"])
        await platform.say("<@&5> hello", group=True, mention_roles=["5"])
        await until(lambda: len(found) == 2)

    assert [(each.addressed, each.text) for each in found if isinstance(each, Said)] == [
        (True, "hello"),
        (False, "<@&5> hello"),
    ]
    assert platform.chats.calls["guilds/77"] == 1


async def test_a_channel_s_name_is_asked_for_again_when_it_has_another_one(platform, channel):
    found: list[Heard] = []
    async with listening(channel, found):
        await platform.say("one", chat="9", group=True)
        await platform.say("two", chat="9", group=True)
        await platform.gateway.tell("CHANNEL_UPDATE", {"id": "9", "name": "Other"})
        await platform.say("three", chat="9", group=True)
        await until(lambda: len(found) == 3)

    assert platform.chats.calls["channels/9"] == 2


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"code": 10008, "message": "Unknown Message"}', MessageGone),
        (b'{"code": 10003, "message": "Unknown Channel"}', NeverHere),
        (b'{"code": 50013, "message": "Missing Permissions"}', NeverHere),
        (b"<html>", NeverHere),
        (b"[]", NeverHere),
    ],
)
def test_a_refusal_means(body, kind):
    assert isinstance(meaning(Answer(status=404, headers={}, body=body)), kind)


def test_a_refusal_is_told_in_discords_words():
    body = b'{"code": 50013, "message": "Missing Permissions"}'

    assert "403 Missing Permissions" in str(meaning(Answer(status=403, headers={}, body=body)))
