"""A storm on the gateway: people on four platforms that fail, tell things twice and late, and drop their answers, while
the processes that serve them are killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from hermes_agent.core.messages import Role
from hermes_agent.host.inbound.listener import serve
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving
from hermes_agent.testing.platform import Chats, Shown, Trouble
from tests.cli.shell import PROGRAM, ROOT
from tests.doubles.discord import DiscordPlatform, discord_platform
from tests.doubles.email import MailPlatform, mail_platform
from tests.doubles.slack import SlackPlatform, slack_platform
from tests.doubles.telegram import TOKEN, TelegramDouble
from tests.measured import measured, path_of

MARK = "may be a repeat"
SECRETS = {
    "TELEGRAM_BOT_TOKEN": TOKEN,
    "DISCORD_BOT_TOKEN": "t.o.k",
    "SLACK_APP_TOKEN": "xapp-1",
    "SLACK_BOT_TOKEN": "xoxb-1",
    "EMAIL_PASSWORD": "secret",
}
STORM = 12
"""Calls in a row that a platform refuses or whose answers it drops."""
TOLD_TWICE = 0.1
TOLD_LATE = 0.1
"""How often a message is told only after the next one of the same person."""
LATE = 8
"""So many things a platform tells at most before it tells one of them once more."""
Double = TelegramDouble | DiscordPlatform | SlackPlatform | MailPlatform


def repeat(heard: Heard) -> Say:
    """What the model says: the numbers of all that it was told since it last spoke."""
    told = takewhile(lambda message: message.role is not Role.ASSISTANT, reversed(heard.messages))
    words = [word for message in told for word in reversed(message.text.split())]
    return Say(" ".join(["re:", *(word for word in reversed(words) if word[:1] == "m" and word[1:].isdigit())]))


def numbers(shown: Shown) -> set[int]:
    """The messages that a message of the agent answers."""
    return {int(word[1:]) for word in shown.text.split() if word[:1] == "m" and word[1:].isdigit()}


@dataclass(slots=True, kw_only=True)
class Side:
    """One platform of the storm. `exact`: it has keys or can be read back; `share` is its part of what is said,
    `people` how many there are in it, each alone with the agent; `told` is what was said in each chat, in the order in
    which the platform told it first, `late` what it holds back."""

    name: str
    double: Double
    exact: bool
    share: float
    people: int
    options: Mapping[str, str]
    chat: Callable[[int], str]
    first: dict[str, str] = field(default_factory=dict)
    late: list[tuple[str, int]] = field(default_factory=list)
    told: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    @property
    def said(self) -> int:
        """How much was said there."""
        return sum(map(len, self.told.values()))

    @property
    def chats(self) -> Chats:
        return self.double.chats

    async def say(self, number: int, person: int) -> None:
        """Somebody says the message of that number; by mail in one thread."""
        chat = self.chat(person)
        thread = {"thread": self.first[chat]} if chat in self.first else {}
        id_ = await self.double.say(f"m{number}", chat=chat, user=chat, **thread)
        if isinstance(self.double, MailPlatform):
            self.first.setdefault(chat, id_)
        if self.double.holding:
            self.late.append((chat, number))
        else:
            self.told[chat].append(number)

    async def tell_late(self) -> None:
        """What was held back is told after what is newer."""
        await self.double.tell_late()
        for chat, number in self.late:
            self.told[chat].append(number)
        self.late.clear()

    def written(self) -> Sequence[Shown]:
        """Everything that people saw of the agent, in order; of mail also what programs may show once."""
        if not isinstance(self.double, MailPlatform):
            return list(self.chats.messages.values())
        return self.double.shown

    async def trouble(self, chance: random.Random) -> None:
        """What goes wrong in the next seconds."""
        if self.chats.troubles:
            return  # There is as much as it can bear: every refusal doubles the pause before the next attempt.
        # Mail that is to come later is tried again in minutes.
        storm = Trouble.BROKEN if self.name == "email" else chance.choice((Trouble.BUSY, Trouble.BROKEN))
        self.chats.order(storm, "send", STORM if self.name != "email" else 2)
        for each in (Trouble.DEAF, Trouble.CUT, Trouble.DEAF):
            self.chats.order(each, "send")
        match self.double:
            case TelegramDouble():
                self.chats.order(Trouble.BROKEN, "listen")
            case DiscordPlatform() if self.double.gateway.links:
                await self.double.gateway.reconnect()
            case SlackPlatform() if self.double.sockets:
                await self.double.refresh()
            case MailPlatform():
                self.double.folder.cut += 1


@asynccontextmanager
async def sides(people: int = 20) -> AsyncIterator[list[Side]]:
    """The four platforms, of each kind at least one: keys, reading back, neither; by mail there are so many people, in
    the others three times as many."""
    async with AsyncExitStack() as open_:
        telegram = TelegramDouble()
        telegram.server = await open_.enter_async_context(serve(telegram.handle))
        discord = await open_.enter_async_context(discord_platform())
        slack = await open_.enter_async_context(slack_platform())
        mail = await open_.enter_async_context(mail_platform())
        yield [
            Side(
                name="telegram",
                double=telegram,
                exact=False,
                share=8,
                people=3 * people,
                options={"api_url": telegram.url},
                chat=lambda person: str(person + 1),
            ),
            Side(
                name="discord",
                double=discord,
                exact=True,
                share=8,
                people=3 * people,
                options={"api": f"{discord.url}/api/v10"},
                chat=lambda person: str(person + 1),
            ),
            Side(
                name="slack",
                double=slack,
                exact=True,
                share=8,
                people=3 * people,
                options={"api": f"{slack.url}/api"},
                chat=lambda person: f"D{person + 1}",
            ),
            Side(
                name="email",
                double=mail,
                exact=False,
                share=1,
                people=people,
                options=mail.options,
                chat=lambda person: f"p{person + 1}@people.test",
            ),
        ]


def configuration(model: str, storms: Iterable[Side], database: str = "") -> str:
    """The `config.yaml` of a home in the storm."""
    lines = [f"model:\n  default: custom/m\n  base_url: {model}\n"]
    if database:
        lines.append(f"store:\n  url: '{database}'\n")
    lines.append("gateway:\n  messages_per_minute: 100000\n  channels:\n")
    for side in storms:
        lines.append(f"    {side.name}:\n      enabled: true\n      guests: ['*']\n      busy: queue\n      options:\n")
        lines += [f"        {name}: '{value}'\n" for name, value in side.options.items()]
    return "".join(lines)


class Crew:
    """The processes that serve a home, by name; each is begun again after it was killed."""

    def __init__(self, home: Path, commands: Mapping[str, tuple[str, ...]]) -> None:
        self._home = home
        self._commands = commands
        self.processes = {name: self._started(name) for name in commands}
        self.kills = 0

    def _started(self, name: str) -> subprocess.Popen[bytes]:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": path_of(ROOT / "src"),
            **measured(),
            "HERMES_HOME": str(self._home),
            "HOME": str(self._home),
        }
        with (self._home / f"{name}.out").open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *self._commands[name]],
                env={**environment, **SECRETS},
                stdout=out,
                stderr=out,
            )

    def kill(self, name: str) -> None:
        """`kill -9`, and another one in its place."""
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()
        self.processes[name] = self._started(name)
        self.kills += 1

    async def end(self) -> list[int]:
        """Have all of them end; their exit codes."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        return [await asyncio.to_thread(process.wait, 40) for process in self.processes.values()]

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


@dataclass(slots=True, kw_only=True)
class Storm:
    """What is said, how often somebody is killed meanwhile, and after how many seconds at least and at most."""

    messages: int
    kills: int
    apart: tuple[float, float] = (3.0, 5.0)
    seed: int = 1
    patience: float = 120.0

    async def rage(self, storms: Sequence[Side], model: ModelServer, crew: Crew) -> None:
        """Until every message is answered. Raises `TimeoutError` where some never are."""
        chance, each = random.Random(self.seed), self.messages // self.kills
        speakers = speaking(storms, chance)
        for first in range(0, self.messages, each):
            await self._burst(speakers, range(first, min(first + each, self.messages)), chance)
            for side in storms:
                await side.trouble(chance)
            await asyncio.sleep(chance.uniform(*self.apart))  # They are somewhere in the middle of their work.
            crew.kill(chance.choice(list(crew.processes)))
            model.exchanges.clear()
        for side in storms:
            side.chats.troubles.clear()  # The storm is over.
        await self._answered(storms)

    async def _burst(self, speakers: Iterator[tuple[Side, int]], said: range, chance: random.Random) -> None:
        numbers = iter(said)
        for number in numbers:
            side, person = next(speakers)
            side.double.holding = chance.random() < TOLD_LATE and number + 1 in said
            await side.say(number, person)
            if side.double.holding:
                side.double.holding = False
                await side.say(next(numbers), person)
                await side.tell_late()
            if chance.random() < TOLD_TWICE:
                back = min(chance.randrange(LATE), side.said - 1)
                await side.double.again(back)

    async def _answered(self, storms: Sequence[Side]) -> None:
        until = time.monotonic() + self.patience
        while missing := {side.name: sorted(missing_of(side)) for side in storms if missing_of(side)}:
            if time.monotonic() > until:
                raise TimeoutError(f"never answered: {missing}")
            await asyncio.sleep(0.25)


def speaking(storms: Sequence[Side], chance: random.Random) -> Iterator[tuple[Side, int]]:
    """Who says something: at first everybody once, then some more than others."""
    everybody = [(side, person) for side in storms for person in range(side.people)]
    chance.shuffle(everybody)
    yield from everybody
    while True:
        side = chance.choices(storms, [each.share for each in storms])[0]
        yield side, chance.randrange(side.people)


def missing_of(side: Side) -> set[int]:
    """What was said there and is not answered."""
    return set().union(*side.told.values()).difference(*map(numbers, side.written()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What people saw on one platform: numbers answered more than once without a mark, the replies that came with one
    (by the numbers in each), and the first number of each reply of chats where they are not in the order of what was
    said."""

    twice: list[int]
    marked: set[frozenset[int]]
    disordered: dict[str, list[int]]


def judged(side: Side) -> Verdict:
    """Look at everything that was written there."""
    answers: Counter[int] = Counter()
    marked: set[frozenset[int]] = set()
    order: dict[str, list[int]] = defaultdict(list)
    for shown in side.written():
        found = numbers(shown)
        order[shown.chat] += sorted(found)[:1]
        if MARK in shown.text:
            marked.add(frozenset(found))
        else:
            answers.update(found)
    places = {number: place for told in side.told.values() for place, number in enumerate(told)}
    return Verdict(
        twice=[number for number, count in answers.items() if count > 1],
        marked=marked,
        disordered={chat: seen for chat, seen in order.items() if seen != sorted(seen, key=places.__getitem__)},
    )


@asynccontextmanager
async def home_of(folder: Path, database: str = "", people: int = 20) -> AsyncIterator[tuple[list[Side], ModelServer]]:
    """A home whose gateway finds the four platforms and the model."""
    folder.mkdir()  # noqa: ASYNC240  nothing runs yet
    async with sides(people) as storms, serving(openai_model(repeat, keys=())) as model:
        (folder / "config.yaml").write_text(configuration(model.url, storms, database))
        yield storms, model
