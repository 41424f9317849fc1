"""The stream of events goes on where the last one was taken in."""

import asyncio
from contextlib import suppress

import pytest

from hermes_agent.gateway.channel import NotNow, TokenRefused
from hermes_agent.gateway.discord.stream import REFUSED, Stream
from hermes_agent.host.http import Http
from tests.doubles.discord import discord_platform


@pytest.fixture
async def platform():
    async with discord_platform() as made:
        yield made


@pytest.fixture
async def http():
    made = Http()
    yield made
    await made.close()


class Taker:
    def __init__(self) -> None:
        self.names: list[str] = []
        self.words: list[str] = []

    async def __call__(self, name, data) -> bool:
        self.names.append(name)
        if name != "MESSAGE_CREATE":
            return False
        self.words.append(data["content"])
        return True


async def until(ready) -> None:
    async with asyncio.timeout(10):
        while not ready():
            await asyncio.sleep(0.01)


async def followed(stream: Stream, platform, taker: Taker, ready) -> None:
    """Follow until something is so, then as if the process was killed."""
    task = asyncio.create_task(stream.follow(platform.gateway.url, taker))
    await until(lambda: ready() or task.done())
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_new_process_goes_on_where_the_last_one_ended(platform, http, tmp_path):
    file, taker = tmp_path / "there" / "session.json", Taker()
    await platform.say("one")
    await followed(
        Stream(http, "t", file), platform, taker, lambda: file.exists() and b'"number": 2' in file.read_bytes()
    )
    await platform.say("two")

    await followed(Stream(http, "t", file), platform, taker, lambda: len(taker.words) == 2)

    assert taker.words == ["one", "two"]
    assert (platform.gateway.identified, platform.gateway.resumed) == (1, 1)


async def test_what_is_kept_badly_begins_anew(platform, http, tmp_path):
    (tmp_path / "session.json").write_text("{")
    taker = Taker()

    await followed(Stream(http, "t", tmp_path / "session.json"), platform, taker, lambda: "READY" in taker.names)

    assert platform.gateway.identified == 1


async def test_a_place_that_cannot_be_kept_holds_nothing_up(platform, http, tmp_path):
    (tmp_path / "session.json").mkdir()
    taker = Taker()
    await platform.say("one")

    await followed(Stream(http, "t", tmp_path / "session.json"), platform, taker, lambda: taker.words == ["one"])

    assert taker.words == ["one"]


async def test_a_session_that_discord_forgot_begins_anew(platform, http, tmp_path):
    stream, taker = Stream(http, "t", tmp_path / "session.json"), Taker()
    await platform.say("one")
    await followed(stream, platform, taker, lambda: taker.words == ["one"])
    platform.gateway.forgetful = True

    with pytest.raises(NotNow, match="session"):  # After a pause: a day has a thousand sessions.
        await stream.follow(platform.gateway.url, taker)
    await followed(stream, platform, taker, lambda: taker.names.count("READY") == 2)

    assert platform.gateway.identified == 2


async def test_a_session_goes_on_elsewhere_where_its_host_is_gone(platform, http, tmp_path):
    stream, taker, url = Stream(http, "t", tmp_path / "session.json"), Taker(), platform.gateway.url
    platform.gateway.url = "ws://127.0.0.1:9/gateway"  # What READY names: nobody listens there any more.
    first = asyncio.create_task(stream.follow(url, taker))
    await until(lambda: "READY" in taker.names)
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    await platform.say("one")

    with pytest.raises(NotNow, match="reached"):
        await stream.follow(url, taker)
    platform.gateway.url = url
    await followed(stream, platform, taker, lambda: taker.words == ["one"])

    assert (platform.gateway.identified, platform.gateway.resumed) == (1, 1)


async def test_discord_may_ask_for_another_connection(platform, http, tmp_path):
    stream, taker = Stream(http, "t", tmp_path / "session.json"), Taker()
    following = asyncio.create_task(stream.follow(platform.gateway.url, taker))
    await until(lambda: "READY" in taker.names)

    await platform.gateway.reconnect()
    await asyncio.wait_for(following, 10)
    await followed(stream, platform, taker, lambda: "RESUMED" in taker.names)

    assert platform.gateway.resumed == 1


@pytest.mark.parametrize("code", sorted(REFUSED))
async def test_a_refused_bot_is_a_sentence(platform, http, tmp_path, code):
    platform.gateway.closing = code

    with pytest.raises(TokenRefused, match="Discord"):
        await Stream(http, "t", tmp_path / "session.json").follow(platform.gateway.url, Taker())


async def test_a_session_that_ran_out_is_not_resumed(platform, http, tmp_path):
    platform.gateway.closing = 4009
    stream, taker = Stream(http, "t", tmp_path / "session.json"), Taker()

    with pytest.raises(NotNow):
        await stream.follow(platform.gateway.url, taker)
    await followed(stream, platform, taker, lambda: "READY" in taker.names)

    assert platform.gateway.identified == 1


async def test_a_beat_that_discord_asks_for_is_given(platform, http, tmp_path):
    stream, taker = Stream(http, "t", tmp_path / "session.json"), Taker()
    following = asyncio.create_task(stream.follow(platform.gateway.url, taker))
    await until(lambda: "READY" in taker.names)

    await platform.gateway.links[-1].send({"op": 1, "d": None})
    await platform.say("hello")

    await until(lambda: platform.received() == 1)
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following
