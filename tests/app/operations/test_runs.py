"""Runs and events as programs have them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.runs import follow_run, read_feed, start_run, toolsets_of
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import RunEnded
from hermes_agent.core.messages import Origin
from hermes_agent.providers.demo.script import Answer, Pace, Say
from tests.app.place import Place, counting, place

WHERE = Conversation(platform="cli", chat_kind="name", chat="me")
SLOW = Answer(pieces=(Say("One two three."),), pace=Pace(first=10.0))


def access(here: Place) -> Access:
    return Access(system=here.runtime, who=here.runtime.owner)


async def test_a_run_is_followed_to_its_end(tmp_path: Path):
    seen: list[str] = []
    async with place(tmp_path, counting) as here:
        started = await start_run(access(here), "Hi", WHERE, origin=Origin.MEMBER)
        ended = await follow_run(access(here), started, lambda event: seen.append(event.kind))
        with pytest.raises(HermesError, match="nothing to do"):
            await start_run(access(here), " ", WHERE, origin=Origin.MEMBER)

    assert isinstance(ended, RunEnded)
    assert ended.text == "Reply 1."
    assert seen[0] == "message_taken"
    assert "replied" in seen


async def test_who_follows_no_more_stops_the_run(tmp_path: Path):
    async with place(tmp_path, [SLOW]) as here:
        started = await start_run(access(here), "Hi", WHERE, origin=Origin.MEMBER)
        following = asyncio.create_task(follow_run(access(here), started, lambda _: None))
        async with asyncio.timeout(5):
            while not here.server.exchanges:
                await asyncio.sleep(0.01)
        following.cancel()
        async with asyncio.timeout(2):
            await asyncio.wait((following,))
            await here.runtime.hermes.idle()
        view = await here.runtime.hermes.view(started.session)

    assert following.cancelled()
    assert not view.running


async def test_events_of_all_sessions_come_once_and_in_order(tmp_path: Path):
    async with place(tmp_path, counting) as here:
        mine = access(here)

        async def asks(text: str) -> None:
            await follow_run(mine, await start_run(mine, text, WHERE, origin=Origin.MEMBER), lambda _: None)

        await here.say("Before")
        cursor = (await read_feed(mine)).cursor
        seen = []
        for word in ("One", "Two"):
            await asks(word)
        await here.say("Three")
        while events := (found := await read_feed(mine, cursor, limit=3)).events:
            cursor = found.cursor
            seen += events
        await asks("Four")
        rest = await read_feed(mine, found.cursor)
        with pytest.raises(HermesError, match="no cursor"):
            await read_feed(mine, "20 x")
        with pytest.raises(HermesError, match="more than a day old"):
            await read_feed(mine, "20.0")

    said = [each.event.message.text for each in seen if each.event.kind == "message_taken"]
    assert said == ["One", "Two", "Three"]
    assert len({(each.session, each.number) for each in seen}) == len(seen)
    assert [each.at for each in seen] == sorted(each.at for each in seen)
    assert [each.event.message.text for each in rest.events if each.event.kind == "message_taken"] == ["Four"]


async def test_a_run_that_goes_on_longer_than_the_overlap_is_not_lost(tmp_path: Path):
    """A session is found by its last message; a long run is found because it is under way."""
    slow = Answer(pieces=(Say("Late."),), pace=Pace(first=0.6))
    async with place(tmp_path, [slow]) as here:
        mine = access(here)
        started = await start_run(mine, "Hi", WHERE, origin=Origin.MEMBER)
        async with asyncio.timeout(5):
            while not here.server.exchanges:
                await asyncio.sleep(0.01)
        found = await read_feed(mine)
        moment, _, places = found.cursor.partition(" ")
        later = f"{float(moment) + 3600:.6f} {places}"  # As if an hour had gone by.
        await follow_run(mine, started, lambda _: None)
        after = await read_feed(mine, later)

    assert "run_ended" in [each.event.kind for each in after.events]


async def test_a_guest_has_a_guests_toolsets(tmp_path: Path):
    async with place(tmp_path, counting) as here:
        guest = Principal(platform="api", user="g", standing=Standing.GUEST)
        assert "board" not in toolsets_of(Access(system=here.runtime, who=guest))
        assert "board" in toolsets_of(access(here))
