"""A gateway on a home of its own: a model server behind it, platforms in memory before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from hermes_agent.gateway.channel import Kind
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.gateway.server import Gateway
from hermes_agent.host.paths import Home
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving
from hermes_agent.testing.platform import Shown
from hermes_agent.testing.scripted import Script
from tests.app.place import settle_home

OWNER = "owners: ['7']\n"


class Harness:
    """What a test works with."""

    def __init__(self, gateway: Gateway, platform: FakePlatform, model: ModelServer) -> None:
        self.gateway = gateway
        self.platform = platform
        self.model = model
        self.store = gateway.runtime.store

    async def shown(self, count: int = 1, chat: str = "1") -> list[Shown]:
        """What is to be seen in a chat, once there are so many messages and nothing is on its way."""
        await eventually(lambda: len(self.platform.chats.of(chat)) >= count)
        await self.gateway.delivery.idle()
        return self.platform.chats.of(chat)

    async def ask(self, text: str, *, user: str = "7", chat: str = "1", **more: object) -> str:
        """Say something, and what the newest message is when there is one more."""
        before = len(self.platform.chats.of(chat))
        await self.platform.say(text, user=user, chat=chat, **more)
        return (await self.shown(before + 1, chat))[-1].text

    async def rest(self) -> None:
        """Return when everything that was said has been heard and no run is under way."""
        async with asyncio.timeout(15):
            await self.platform.waiting.join()
        scheduler = self.gateway.runtime.hermes.scheduler
        await eventually(lambda: not scheduler._running)
        await self.gateway.command_queue.drain()
        await self.gateway.delivery.idle()


async def eventually(ready: Callable[[], bool | Awaitable[bool]], seconds: float = 15.0) -> None:
    async with asyncio.timeout(seconds):
        while True:
            found = ready()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.01)


@asynccontextmanager
async def harness(
    path: Path,
    script: Script,
    channel: str = OWNER,
    platform: FakePlatform | None = None,
    gateway: str = "",
    more: str = "",
) -> AsyncIterator[Harness]:
    """A gateway with one channel; `channel`, `gateway` and `more` are lines of its configuration."""
    platform = platform or FakePlatform()
    async with serving(openai_model(script, keys=())) as model:
        home = Home(root=path / "home", base=path / "home")
        settle_home(home.root, model.url)
        lines = "".join(f"      {line}\n" for line in f"enabled: true\n{channel}".splitlines())
        own = "".join(f"  {line}\n" for line in gateway.splitlines())
        with home.config_file.open("a") as file:
            file.write(f"gateway:\n{own}  channels:\n    {platform.name}:\n{lines}{more}")
        async with open_gateway(home, {platform.name: platform.kind()}) as opened:
            yield Harness(opened, platform, model)


@asynccontextmanager
async def opened(path: Path, kind: Kind, script: Script, people: str, more: str = "") -> AsyncIterator[ModelServer]:
    """A gateway with that one channel; `more` are lines of its configuration."""
    async with serving(openai_model(script, keys=())) as model:
        home = Home(root=path / "home", base=path / "home")
        settle_home(home.root, model.url)
        lines = "".join(f"      {line}\n" for line in f"enabled: true\n{people}".splitlines())
        with home.config_file.open("a") as file:
            file.write(f"gateway:\n  channels:\n    {kind.name}:\n{lines}{more}")
        async with open_gateway(home, {kind.name: kind}):
            yield model
