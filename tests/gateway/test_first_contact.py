"""The first contact of a channel during its setup."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.app.operations.access import open_offline
from hermes_agent.app.operations.serving import facts_of
from hermes_agent.app.settings import Settings
from hermes_agent.gateway.channels.telegram import CHANNEL
from hermes_agent.gateway.first_contact import first_message, trial
from hermes_agent.host.config import load
from hermes_agent.host.inbound.listener import serve_in_thread
from hermes_agent.host.paths import Home
from tests.doubles.telegram import TOKEN, TelegramDouble


@pytest.fixture
def double() -> Iterator[TelegramDouble]:
    made = TelegramDouble()
    with serve_in_thread(made.handle) as server:
        made.server = server
        yield made


async def test_the_first_message_is_left_for_the_gateway(tmp_path: Path, double: TelegramDouble) -> None:
    home = Home(root=tmp_path, base=tmp_path).ensure()
    options = {"api_url": double.url}
    async with open_offline(home, load(home, Settings)) as access:
        await double.say("In a group", chat="-5", user="7", group=True)
        await double.say("Hello", chat="7", user="7")
        for _ in range(2):
            async with trial(access, CHANNEL, options, lambda _: TOKEN) as channel:
                assert await channel.check() == "@hermes_bot"
                said = await asyncio.wait_for(first_message(access, channel, frozenset()), 20)
            assert (said.text, said.sender.user) == ("Hello", "7")
        assert await facts_of(access.system).of("channel:telegram:123456") == {}
