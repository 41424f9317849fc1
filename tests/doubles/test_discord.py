"""discord.py talks to the double as to Discord."""

import asyncio
from collections.abc import AsyncIterator

import discord
import pytest
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from tests.doubles.discord import DiscordPlatform, discord_platform


class Client(discord.Client):
    """Notes what it hears and answers it."""

    def __init__(self) -> None:
        super().__init__(intents=discord.Intents.default() | discord.Intents(message_content=True))
        self.heard: asyncio.Queue[discord.Message] = asyncio.Queue()

    async def on_message(self, message: discord.Message) -> None:
        await self.heard.put(message)


@pytest.fixture
async def platform() -> AsyncIterator[DiscordPlatform]:
    base, gateway = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY
    async with discord_platform() as made:
        Route.BASE = f"{made.url}/api/v10"
        DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(made.gateway.url)
        try:
            yield made
        finally:
            Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = base, gateway


async def test_discord_py_hears_answers_edits_and_deletes(platform):
    client = Client()
    running = asyncio.create_task(client.start("token"))
    source_id = await platform.say("hello")

    message = await asyncio.wait_for(client.heard.get(), 20)
    answer = await message.reply("hi", view=discord.ui.View().add_item(discord.ui.Button(label="Yes", custom_id="x")))
    await answer.edit(content="bye")
    (shown,) = platform.chats.of("1")
    await answer.add_reaction("👀")
    await answer.delete()
    await client.close()
    await running

    assert (message.content, message.author.name) == ("hello", "ann")
    assert (shown.text, shown.answers, shown.edits) == ("bye", source_id, 1)
    assert platform.chats.of("1") == []
    assert platform.chats.reactions[0][1] == "👀"


async def test_discord_py_is_refused_as_by_discord(platform):
    platform.unauthorized = True

    with pytest.raises(discord.LoginFailure):
        async with Client() as client:
            await client.login("token")
