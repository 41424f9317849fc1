"""A stage for each channel: the channel itself, and the double of its platform that it talks to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path

from hermes_agent.core.clock import SystemClock
from hermes_agent.gateway.channel import Abilities, Channel, Kind, Needs
from hermes_agent.gateway.channels.discord import CHANNEL as DISCORD
from hermes_agent.gateway.channels.email import CHANNEL as MAIL
from hermes_agent.gateway.channels.matrix import CHANNEL as MATRIX
from hermes_agent.gateway.channels.ntfy import CHANNEL as NTFY
from hermes_agent.gateway.channels.slack import CHANNEL as SLACK
from hermes_agent.gateway.channels.telegram import CHANNEL as TELEGRAM
from hermes_agent.gateway.email.sending import GREYLISTED
from hermes_agent.gateway.inbound_events import Heard
from hermes_agent.host.http import Http
from hermes_agent.testing.channel import ABILITIES, FakeKept, FakePlatform
from hermes_agent.testing.platform import TITLE, Double
from tests.doubles.discord import discord_platform
from tests.doubles.email import mail_platform
from tests.doubles.homeserver import matrix_platform
from tests.doubles.ntfy import ntfy_platform
from tests.doubles.slack import slack_platform
from tests.doubles.telegram import TOKEN, telegram


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What one test of the contract works with. `chat`, `person`, `group` and `thread` are how the platform names what
    the tests speak of, and of another `presser` of buttons; `busy` is after how many seconds it says that a busy
    platform may be asked again, `name` what it calls people, `replies` whether messages reply to each other."""

    kind: Kind
    channel: Channel
    double: Double
    chat: str = "1"
    person: str = "7"
    group: str = "9"
    thread: str = "4"
    busy: float = 1.0
    presser: str = "8"
    name: str = "Ann"
    replies: bool = True


def needs(folder: Path, options: Mapping[str, str] | None = None, secret: str = "secret") -> Needs:
    """What a channel of a test is made of."""
    return Needs(
        options=options or {},
        secret=lambda _: secret,
        http=Http(),
        clock=SystemClock(),
        folder=folder,
        kept=FakeKept(),
    )


Maker = Callable[[Path], AbstractAsyncContextManager[Stage]]


def fake(abilities: Abilities) -> Maker:
    @asynccontextmanager
    async def make(folder: Path) -> AsyncIterator[Stage]:
        platform = FakePlatform(abilities)
        kind = platform.kind()
        yield Stage(kind=kind, channel=kind.make(needs(folder)), double=platform)

    return make


@asynccontextmanager
async def email(folder: Path) -> AsyncIterator[Stage]:
    async with mail_platform() as platform:
        yield Stage(
            kind=MAIL,
            channel=MAIL.make(needs(folder, platform.options)),
            double=platform,
            chat="ann@people.test",
            person="ann@people.test",
            group="ann@people.test,bob@people.test",
            thread="4@people.test",
            busy=GREYLISTED,
        )


@asynccontextmanager
async def slack(folder: Path) -> AsyncIterator[Stage]:
    async with slack_platform() as platform:
        given = needs(folder, {"api": f"{platform.url}/api"})
        made = SLACK.make(given)
        yield Stage(kind=SLACK, channel=made, double=platform, chat="D1", group="C9", thread="1700000000.000004")
        await given.http.close()


@asynccontextmanager
async def discord(folder: Path) -> AsyncIterator[Stage]:
    async with discord_platform() as platform:
        given = needs(folder, {"api": f"{platform.url}/api/v10"})
        yield Stage(kind=DISCORD, channel=DISCORD.make(given), double=platform)
        await given.http.close()


@asynccontextmanager
async def matrix(folder: Path) -> AsyncIterator[Stage]:
    async with matrix_platform() as platform:
        given = needs(folder, {"homeserver": platform.url})
        yield Stage(
            kind=MATRIX,
            channel=MATRIX.make(given),
            double=platform,
            chat="!1:hermes.test",
            person="@ann:hermes.test",
            group="!9:hermes.test",
            thread="$4",
        )
        await given.http.close()


@asynccontextmanager
async def ntfy(folder: Path) -> AsyncIterator[Stage]:
    async with ntfy_platform() as platform:
        groups = f"{TITLE} ops-topic-77"
        given = needs(folder, {"server": platform.url, "topic": "anns-topic-77", "groups": groups})
        texts = given.kept.texts if isinstance(given.kept, FakeKept) else {}
        place = f"channel:ntfy:anns-topic-77,{groups.replace(' ', ',')}"
        platform.taken = lambda: texts.get(place, {}).get("mark", "")
        yield Stage(
            kind=NTFY,
            channel=NTFY.make(given),
            double=platform,
            chat="anns-topic-77",
            person="anns-topic-77",
            group=TITLE,
            presser="anns-topic-77",
            name="",
            replies=False,
        )
        await given.http.close()


@asynccontextmanager
async def on_telegram(folder: Path) -> AsyncIterator[Stage]:
    async with telegram() as double:
        made = needs(folder, {"api_url": double.url}, TOKEN)
        yield Stage(kind=TELEGRAM, channel=TELEGRAM.make(made), double=double)
        await made.http.close()


class Ear:
    """What a channel told, and a way to wait for it."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.failing = 0
        self._more = asyncio.Event()

    async def __call__(self, heard: Heard) -> str:
        if self.failing:
            self.failing -= 1
            raise OSError("the disk is full")
        self.heard.append(heard)
        self._more.set()
        return "heard"

    async def until(self, ready: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not ready():
                await self._more.wait()
                self._more.clear()


MAKERS: dict[str, Maker] = {
    "discord": discord,
    "telegram": on_telegram,
    "email": email,
    "matrix": matrix,
    "ntfy": ntfy,
    "slack": slack,
    "fake": fake(ABILITIES),
    "fake that is keyed": fake(Abilities(longest_message=100, keyed=inf, edit=True)),
    "fake that drafts": fake(Abilities(longest_message=100, draft=30.0)),
    "fake that is read back": fake(Abilities(longest_message=100, read_back=True)),
}
"""Name of a channel (each of the table, and the fakes) -> what makes its stage."""
