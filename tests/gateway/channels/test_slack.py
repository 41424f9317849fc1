"""The Slack channel beyond the contract: connections, refusals, files, commands, what was sent before."""

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from hermes_agent.core.chat import Attachment, Button, Conversation
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channel import (
    ChannelError,
    Heard,
    NeverHere,
    NotNow,
    OutcomeUnknown,
    Part,
    Said,
    TokenRefused,
)
from hermes_agent.gateway.channels.slack import CHANNEL
from hermes_agent.testing.clock import FakeClock
from hermes_agent.testing.platform import TITLE, Trouble
from tests.contracts.channels import needs
from tests.doubles.slack import slack_platform

ANN = Conversation(platform="slack", chat="D1")


@pytest.fixture
async def platform():
    async with slack_platform() as made:
        yield made


@pytest.fixture
async def channel(platform, tmp_path):
    given = needs(tmp_path, {"api": f"{platform.url}/api"})
    made = CHANNEL.make(given)
    yield made
    await made.close()
    await given.http.close()


@asynccontextmanager
async def listening(channel, found: list[Heard]):
    async def hear(heard: Heard) -> str:
        found.append(heard)
        return "noted"

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


async def test_another_connection_is_taken_when_slack_wants_it(platform, channel):
    found: list[Heard] = []
    async with listening(channel, found):
        await until(lambda: platform.sockets)
        await platform.refresh()
        await platform.say("hello")
        await until(lambda: found)

    assert platform.chats.calls["apps.connections.open"] == 2


async def test_socket_mode_that_is_switched_off_stops_the_channel(platform, channel):
    async with listening(channel, []) as task:
        await until(lambda: platform.sockets)
        await platform.refresh("link_disabled")
        with pytest.raises(TokenRefused, match="Socket Mode"):
            await asyncio.wait_for(task, 10)


async def test_a_revoked_token_is_a_sentence(platform, channel):
    platform.refusal = "token_revoked"

    with pytest.raises(TokenRefused, match="SLACK_BOT_TOKEN"):
        await channel.listen(lambda heard: None)
    with pytest.raises(ChannelError, match="token_revoked"):
        await channel.check()


async def test_who_pressed_is_told_alone(platform, channel):
    found: list[Heard] = []
    receipt = await channel.send(ANN, Part(text="x" * 3500, buttons=(Button(label="Yes", value="y"),), slot=1), "k")
    async with listening(channel, found):
        await platform.press(receipt, 0)
        await until(lambda: platform.whispers)

    assert (platform.whispers[0]["text"], platform.whispers[0]["user"]) == ("noted", "7")
    assert len(platform.stamps[receipt]["blocks"]) == 3


async def test_what_escaping_makes_too_long_is_shown_in_sections(platform, channel):
    receipt = await channel.send(ANN, Part(text="<" * 2000 + "\n" + "&" * 1500), "k")
    await channel.edit(ANN, receipt, Part(text="<" * 3000))

    sections = [block["text"]["text"] for block in platform.stamps[receipt]["blocks"]]
    assert "".join(sections) == "&lt;" * 3000
    assert max(map(len, sections)) <= 3000
    assert all(section.endswith(";") for section in sections)
    assert len(platform.stamps[receipt]["text"]) <= 4000


async def test_a_file_is_fetched_from_slack_alone(platform, channel):
    platform.files["F1"] = b"content"
    found: list[Heard] = []
    urls = [f"{platform.url}/files/F1", "https://evil.test/files/F1", f"{platform.url}/files/F2"]
    async with listening(channel, found):
        await platform.say("see", files=[{"id": "F1", "url_private": url} for url in urls])
        await until(lambda: found)

    said = found[0]
    assert isinstance(said, Said)
    assert await channel.fetch(said.media[0], 10**9) == b"content"
    with pytest.raises(NeverHere, match="not kept by Slack"):
        await channel.fetch(said.media[1], 10**9)
    with pytest.raises(NeverHere, match="files:read"):
        await channel.fetch(said.media[2], 10**9)


async def test_a_name_that_slack_does_not_tell_is_none(platform, channel):
    found: list[Heard] = []
    async with listening(channel, found):
        platform.chats.order(Trouble.BROKEN, "users.info")
        await platform.say("hello")
        await until(lambda: found)

    assert isinstance(said := found[0], Said)
    assert said.sender.name == ""


async def test_a_file_that_was_sent_is_found_and_taken_back(platform, channel, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"content")
    part = Part(text="", file=Attachment(path=str(tmp_path / "a.txt"), name="a.txt"))
    assert await channel.find(ANN, part, "k", time.time()) is None
    platform.chats.order(Trouble.DEAF, "send")
    with pytest.raises(OutcomeUnknown):
        await channel.send(ANN, part, "k")

    receipt = await channel.find(ANN, part, "k", time.time() - 5)
    assert receipt is not None
    await channel.edit(ANN, receipt, part)
    await channel.delete(ANN, receipt)

    assert platform.chats.of("D1") == []


async def test_a_file_that_is_not_there_is_said_so(channel, tmp_path):
    part = Part(text="", file=Attachment(path=str(tmp_path / "none"), name="none"))

    with pytest.raises(NeverHere, match="none cannot be read"):
        await channel.send(ANN, part, "k")


async def test_the_double_knows_no_other_methods(platform, channel):
    with pytest.raises(NeverHere, match="unknown method"):
        await channel._bot.call("nothing.like.it")


def test_tokens_are_needed(tmp_path):
    with pytest.raises(ConfigError, match="SLACK_APP_TOKEN"):
        CHANNEL.make(needs(tmp_path, {}, secret=""))
    with pytest.raises(ConfigError, match="threads"):
        CHANNEL.make(needs(tmp_path, {"threads": "maybe"}))


async def test_a_file_of_another_organisation_is_asked_for(platform, channel):
    platform.files["F1"] = b"content"
    found: list[Heard] = []
    told = {"mode": "file_access", "file_access": "check_file_info"}
    async with listening(channel, found):
        await platform.say("see", files=[{"id": "F1", **told}, {"id": "F2", **told}])
        await until(lambda: found)

    (said,) = found
    assert isinstance(said, Said)
    assert [(media.name, media.media_type, media.size) for media in said.media] == [
        ("F1.png", "image/png", 7),
        ("F2", "application/octet-stream", 0),
    ]


async def test_the_name_of_a_channel_is_asked_for_once_an_hour_and_need_not_be_told(platform, tmp_path):
    clock = FakeClock()
    given = replace(needs(tmp_path, {"api": f"{platform.url}/api"}), clock=clock)
    channel, found = CHANNEL.make(given), []
    platform.chats.order(Trouble.BROKEN, "conversations.info")
    async with listening(channel, found):
        for number, later in enumerate((0.0, 60.0, 3600.0), 1):
            await clock.advance(later)
            await platform.say("hello", chat="C9", group=True)
            await until(lambda number=number: len(found) == number)
    await given.http.close()

    assert [said.title for said in found] == ["", "", TITLE]
    assert platform.chats.calls["conversations.info"] == 2
