"""The ntfy channel beyond the contract: where it goes on, who speaks, files, old servers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from hermes_agent.core.chat import Button, Conversation
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channel import NeverHere, Part, Said, TokenRefused
from hermes_agent.gateway.channels.ntfy import ANYBODY, CHANNEL
from tests.contracts.channels import Ear, needs
from tests.doubles.ntfy import ntfy_platform

ANN = Conversation(platform="ntfy", chat="mine")


@pytest.fixture
async def platform():
    async with ntfy_platform() as made:
        yield made


@pytest.fixture
async def given(platform, tmp_path):
    made = needs(tmp_path, {"server": platform.url, "topic": "mine"})
    yield made
    await made.http.close()


async def heard(given, count: int) -> list[Said]:
    """What the next process is told, until it has heard so much."""
    ear = Ear()
    task = asyncio.create_task(CHANNEL.make(given).listen(ear))
    await ear.until(lambda: len(ear.heard) == count)
    async with asyncio.timeout(5):
        while given.kept.texts.get("channel:ntfy:mine", {}).get("mark") != ear.heard[-1].source_id:
            await asyncio.sleep(0.01)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return [each for each in ear.heard if isinstance(each, Said)]


async def test_a_new_process_goes_on_behind_what_the_last_one_took_in(platform, given):
    await platform.say("one")
    assert [said.text for said in await heard(given, 1)] == ["one"]
    last = await platform.say("two", title="News")

    assert [said.text for said in await heard(given, 1)] == ["News\n\ntwo"]
    assert platform.since == platform.told[0]["id"] != last


async def test_its_own_messages_are_not_heard(platform, given):
    channel = CHANNEL.make(given)
    await channel.send(ANN, Part(text="Hello"), "k")
    await platform.say("Hi")

    assert [said.text for said in await heard(given, 1)] == ["Hi"]


@pytest.mark.parametrize(("reserved", "user"), [(True, "mine"), (False, ANYBODY)])
async def test_who_speaks_is_known_only_where_nobody_else_can(platform, given, reserved, user):
    platform.reserved = reserved
    await platform.say("Hi")

    assert [said.sender.user for said in await heard(given, 1)] == [user]


async def test_a_file_is_fetched_from_its_own_server_alone(platform, given):
    platform.files["a.bin"] = b"content"
    for url in (f"{platform.url}/file/a.bin", "http://169.254.169.254/file/a", f"{platform.url}/file/gone"):
        await platform.say("See", attachment={"name": "a.bin", "type": "x/y", "size": 7, "url": url})
    one, two, three = [said.media[0] for said in await heard(given, 3)]
    channel = CHANNEL.make(given)

    assert await channel.fetch(one, 100) == b"content"
    with pytest.raises(NeverHere, match="not kept by this ntfy server"):
        await channel.fetch(two, 100)
    with pytest.raises(NeverHere, match="404"):
        await channel.fetch(three, 100)


async def test_a_server_that_would_show_a_message_twice_is_not_used(platform, given):
    platform.version = "2.15.1"
    for call in (CHANNEL.make(given).check(), CHANNEL.make(given).listen(Ear())):
        with pytest.raises(TokenRefused, match="or later is needed"):
            await call


async def test_a_wrong_token_is_said(platform, given):
    platform.token = "another"
    with pytest.raises(TokenRefused, match="lets nobody listen"):
        await CHANNEL.make(given).listen(Ear())
    with pytest.raises(TokenRefused, match="does not accept NTFY_TOKEN"):
        await CHANNEL.make(given).send(ANN, Part(text="x"), "k")


async def test_a_button_holds_no_token_but_that_for_buttons(platform, tmp_path):
    secrets = {"NTFY_TOKEN": "secret", "NTFY_BUTTON_TOKEN": ""}
    made = needs(tmp_path, {"server": platform.url, "topic": "mine"})
    for button_token in ("", "press"):
        secrets["NTFY_BUTTON_TOKEN"] = button_token
        channel = CHANNEL.make(replace(made, secret=secrets.__getitem__))
        await channel.send(ANN, Part(text="May I?", buttons=(Button(label="Yes", value="y"),), slot=5), button_token)
    without, with_one = platform.chats.of("mine")
    await made.http.close()

    assert without.buttons == ()
    assert "Bearer press" in with_one.written
    assert "secret" not in with_one.written


@pytest.mark.parametrize("options", [{}, {"topic": "a/b"}, {"topic": "a", "groups": "b ?"}])
def test_a_topic_that_cannot_be_is_said(tmp_path, options):
    with pytest.raises(ConfigError, match="topic is missing"):
        CHANNEL.make(needs(tmp_path, options))
