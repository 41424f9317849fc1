"""What the suites need of each channel: a stage with the double of its platform, a server that does not answer, and
people."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from hermes_agent.core.clock import SystemClock
from hermes_agent.gateway.channel import Abilities, Channel, Heard, Kind, Needs
from hermes_agent.gateway.channels.discord import CHANNEL as DISCORD
from hermes_agent.gateway.channels.email import CHANNEL as MAIL
from hermes_agent.gateway.channels.matrix import CHANNEL as MATRIX
from hermes_agent.gateway.channels.ntfy import CHANNEL as NTFY
from hermes_agent.gateway.channels.slack import CHANNEL as SLACK
from hermes_agent.gateway.channels.telegram import CHANNEL as TELEGRAM
from hermes_agent.gateway.email.sending import GREYLISTED
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Town:
    """Who is on a platform by their ids: the owner, a member, somebody whom the agent never hears; and a group. `ways`
    are messages in which the platform itself names the third, each with what `Double.say` takes besides; `{}` stands
    for the id."""

    ann: str
    bob: str
    eve: str
    group: str
    ways: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    also: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What all suites need of a channel of the table. `server` gives the options with which it talks to a server on
    that port of this machine."""

    stage: Maker
    server: Callable[[int], dict[str, str]]
    town: Town


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
        platform.taken = kept_mark(given, f"channel:ntfy:anns-topic-77,{groups.replace(' ', ',')}")
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


def kept_mark(given: Needs, place: str) -> Callable[[], str]:
    """Gives the mark of the `KeptCursor` at a place: the `taken` of a double whose platform is not told."""

    def mark() -> str:
        return given.kept.texts.get(place, {}).get("mark", "") if isinstance(given.kept, FakeKept) else ""

    return mark


def person(id_: str) -> dict[str, Any]:
    return {"id": id_, "username": "eve", "global_name": "Eve"}


CASES: dict[str, Case] = {
    "discord": Case(
        stage=discord,
        server=lambda port: {"api": f"http://127.0.0.1:{port}"},
        town=Town(
            ann="111122223333444401",
            bob="111122223333444402",
            eve="111122223333444403",
            group="111122223333444409",
            ways=(
                ("ask <@{}> or <@!{}>", {}),
                (
                    "what of it",
                    {"referenced_message": {"author": person("111122223333444403"), "content": "by <@{}>, {}"}},
                ),
                ("see", {"message_snapshots": [{"message": {"content": "<@{}> said so"}}]}),
            ),
        ),
    ),
    "email": Case(
        stage=email,
        server=lambda port: {
            "address": "hermes@agent.test",
            **{f"{kind}_host": "127.0.0.1" for kind in ("imap", "smtp")},
            **{f"{kind}_port": str(port) for kind in ("imap", "smtp")},
            **{f"{kind}_security": "none" for kind in ("imap", "smtp")},
        },
        town=Town(
            ann="ann@people.test",
            bob="bob@people.test",
            eve="eve@people.test",
            group="ann@people.test,bob@people.test",
            also=("ben@people.test",),
            ways=(
                ("What of it?\n\nOn Monday, Eve <{}> wrote:\n> I am {}", {}),
                ("See below.\n\n---- Forwarded ----\nFrom: {}\nTo: ben@people.test\nSubject: Hi\n\nHello {}", {}),
                ("So?\n\n{} wrote:\n> ben@people.test asked", {}),
            ),
        ),
    ),
    "matrix": Case(
        stage=matrix,
        server=lambda port: {"homeserver": f"http://127.0.0.1:{port}"},
        town=Town(
            ann="@ann:people.test",
            bob="@bob:people.test",
            eve="@eve:people.test",
            group="!ops:people.test",
            ways=(
                ("ask {}: or https://matrix.to/#/{}", {"m.mentions": {"user_ids": ["{}"]}}),
                ("> <{}> I said\n\nwhat of it", {}),
            ),
        ),
    ),
    "ntfy": Case(
        stage=ntfy,
        server=lambda port: {"server": f"http://127.0.0.1:{port}", "topic": "mine"},
        town=Town(ann="anns-topic-77", bob="anns-topic-77", eve="anns-topic-77", group="ops-topic-77"),
    ),
    "slack": Case(
        stage=slack,
        server=lambda port: {"api": f"http://127.0.0.1:{port}"},
        town=Town(
            ann="U0ANN1234",
            bob="U0BOB1234",
            eve="U0EVE1234",
            group="C0OPS1234",
            ways=(("ask <@{}> or <@{}|eve>, {}", {}),),
        ),
    ),
    "telegram": Case(
        stage=on_telegram,
        server=lambda port: {"api_url": f"http://127.0.0.1:{port}"},
        town=Town(
            ann="1111222201",
            bob="1111222202",
            eve="1111222203",
            group="-1001111222209",
            ways=(
                (
                    "Eve knows {}",
                    {"entities": [{"type": "text_mention", "offset": 0, "length": 3, "user": {"id": "{}"}}]},
                ),
                ("what of it", {"reply_to_message": {"message_id": 5, "from": {"id": "{}"}, "text": "I am {}"}}),
                ("this is {}", {"forward_origin": {"type": "user", "sender_user": {"id": "{}", "first_name": "Eve"}}}),
            ),
        ),
    ),
}
"""Name of a channel of the table -> what the suites need of it."""
MAKERS: dict[str, Maker] = {
    **{name: case.stage for name, case in CASES.items()},
    "fake": fake(ABILITIES),
    "fake that is keyed": fake(Abilities(longest_message=100, keyed=inf, edit=True)),
    "fake that drafts": fake(Abilities(longest_message=100, draft=30.0)),
    "fake that is read back": fake(Abilities(longest_message=100, read_back=True)),
}
"""Name of a channel (each of the table, and the fakes) -> what makes its stage."""
