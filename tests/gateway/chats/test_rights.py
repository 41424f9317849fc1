"""Who gets what where: each channel, kind of person, kind of chat, command and button, against the table of the manual;
and what two people of one group never see of each other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from hermes_agent.app.chats.settings import GUESTS_COMMANDS, OWNERS_COMMANDS
from hermes_agent.app.command_queue import CommandQueue
from hermes_agent.app.commands import COMMANDS
from hermes_agent.core.chat import Button, Content, Conversation, Inbound, Letter, Standing
from hermes_agent.core.events import Asked, RunStarted
from hermes_agent.core.messages import Role, Text
from hermes_agent.gateway.channel import Pressed, Said, Sender
from hermes_agent.gateway.channel_runtime import ChannelRuntime
from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.gateway.server import Gateway
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.testing.channel import ABILITIES, FakePlatform
from tests.app.place import settle_home
from tests.gateway.harness import Harness, eventually, harness

RULES = (
    "{{enabled: true, owners: [own], members: [mem, 'role:crew'], guests: [gue], groups: [yes], "
    "chats: {{loud: {{mention: false}}}}}}"
)
PEOPLE = {
    "owner": Sender(user="own", name="Olga"),
    "member": Sender(user="mem", name="Max"),
    "member by role": Sender(user="rol", name="Rita", groups=("role:crew",)),
    "let in by a code": Sender(user="cod", name="Cora"),
    "guest": Sender(user="gue", name="Gus"),
    "stranger": Sender(user="str", name="own"),
    "program with the owner's id": Sender(user="own", name="Olga", bot=True),
}
RANKS = {
    "owner": "owner",
    "member": "member",
    "member by role": "member",
    "let in by a code": "member",
    "guest": "guest",
    "stranger": "",
    "program with the owner's id": "",
}


@dataclass(frozen=True)
class Chat:
    kind: str
    id: str
    thread: str = ""
    addressed: bool = False

    def where(self, channel: str) -> Conversation:
        return Conversation(platform=channel, chat_kind=self.kind, chat=self.id, thread=self.thread)


CHATS = {
    "alone": Chat("dm", "alone"),
    "group, named": Chat("group", "yes", addressed=True),
    "group, not named": Chat("group", "yes"),
    "thread of a group, named": Chat("group", "yes", "t", addressed=True),
    "group that it is not in": Chat("group", "no", addressed=True),
}
WORDS = "hello there"


def expected(person: str, chat: str, said: str) -> str:
    """The manual's table, told another way: `taken`, `may not`, `no command`, `a code` or nothing."""
    rank, alone = RANKS[person], chat == "alone"
    if chat == "group that it is not in" or person.startswith("program"):
        return ""
    if not rank:
        return "a code" if alone else ""
    if not said.startswith("/"):
        return "" if chat == "group, not named" else "taken"
    name = said[1:]
    if name not in COMMANDS:
        return "no command" if rank == "guest" else "taken"
    refused = (rank == "member" and name in OWNERS_COMMANDS) or (rank == "guest" and name not in GUESTS_COMMANDS)
    return "may not" if refused else "taken"


class Noted(CommandQueue):
    """Orders that are noted and not done."""

    def __init__(self, command_queue: CommandQueue) -> None:
        self.noted = ""
        self._tasks = command_queue._tasks
        self.workspace = command_queue.workspace

    async def enqueue(self, inbound: Inbound) -> None:
        self.noted = "taken"

    async def stop(self, inbound: Inbound, *, fetched: bool = False) -> None:
        self.noted = "taken"

    async def do_at_once(self, inbound: Inbound) -> None:
        self.noted = "taken"

    async def answer(self, inbound: Inbound, text: str) -> None:
        marks = {"may not": "You may not use", "no command": "There is no command", "a code": "pairing approve"}
        self.noted = next((mark for mark, words in marks.items() if words in text), text)


@asynccontextmanager
async def everywhere(path: Path) -> AsyncIterator[Gateway]:
    """A gateway with every channel of the table, its platforms in memory, on which nothing is worked on."""
    home = Home(root=path, base=path)
    settle_home(home.root, "http://127.0.0.1:9")
    with home.config_file.open("a") as file:
        file.write("gateway:\n  messages_per_minute: 100000\n  channels:\n")
        file.writelines(f"    {name}: {RULES.format()}\n" for name in CHANNELS)
    kinds = {name: FakePlatform(name=name).kind() for name in CHANNELS}
    async with open_gateway(home, kinds) as gateway:
        gateway.runtime.hermes.scheduler._resting = True
        pairing = gateway.runtime.store.pairing
        for name in CHANNELS:
            assert await pairing.approve(await pairing.ask(name, "cod", "Cora"))
        await gateway.access.people.meet(gateway.runtime.store)
        yield gateway


async def test_every_person_gets_everywhere_what_the_table_says(tmp_path: Path):
    async with everywhere(tmp_path) as gateway:
        command_queue = gateway.ingress._command_queue = Noted(gateway.command_queue)
        wrong: list[tuple[str, ...]] = []
        count = 0
        said = [WORDS, "/nonsense", *(f"/{name}" for name in COMMANDS)]
        for channel, person, chat, text in product(CHANNELS, PEOPLE, CHATS, said):
            count += 1
            found = await outcome(gateway, command_queue, gateway.known[channel], person, chat, text, count)
            if found != expected(person, chat, text):
                wrong.append((channel, person, chat, text, found))
        assert not wrong
        assert count == len(CHANNELS) * len(PEOPLE) * len(CHATS) * len(said) > 4000


async def outcome(
    gateway: Gateway, command_queue: Noted, line: ChannelRuntime, person: str, chat: str, text: str, number: int
) -> str:
    """What became of it: what the orders noted, or mail in the inbox."""
    command_queue.noted = ""
    place = CHATS[chat]
    if person == "stranger" and place.kind == "dm":  # Each gets one code, and three may wait: a new one for each row.
        await gateway.runtime.store.pairing.clear()
    said = Said(
        source_id=str(number),
        where=place.where(line.kind.name),
        sender=PEOPLE[person],
        text=text,
        at=1.0,
        addressed=place.addressed,
    )
    await gateway.ingress.hear(line, said)
    mail = None if text.startswith("/") else await gateway.runtime.store.inbox.find(line.kind.name, str(number))
    return "taken" if mail is not None else command_queue.noted


BUTTON_PLACES = {"alone": CHATS["alone"], "group": CHATS["group, named"], "elsewhere": CHATS["group that it is not in"]}


def pressed(whose: str, approval: bool, person: str, place: str) -> str:
    """What a button gives, told another way."""
    rank = RANKS[person]
    if not rank or place == "elsewhere":
        return "This question is for someone else."
    if rank != "owner" and person != whose:
        return "Only the person whose session it is, or the owner, may answer that."
    if approval and rank == "guest":
        return "Guests cannot approve calls. The owner has been asked."
    return "Yes"


async def test_every_button_is_for_whom_it_is(tmp_path: Path):
    async with everywhere(tmp_path) as gateway:
        wrong, count = list[tuple[object, ...]](), 0
        rows = product(CHANNELS, ("owner", "member", "guest"), (True, False), BUTTON_PLACES)
        for channel, whose, approval, place in rows:
            slot, where = await asked(gateway, BUTTON_PLACES[place].where(channel), whose, approval=approval)
            words = {person: await press(gateway, where, person, slot) for person in PEOPLE}
            count += len(words)
            wrong += [
                (channel, whose, approval, place, *row)
                for row in words.items()
                if row[1] != pressed(whose, approval, row[0], place)
            ]
        assert not wrong
        assert count == len(CHANNELS) * 3 * 2 * len(BUTTON_PLACES) * len(PEOPLE)


async def press(gateway: Gateway, where: Conversation, person: str, slot: int) -> str:
    """The word that somebody is given who presses the first button of a slot."""
    given = Pressed(source_id=f"{slot}:{person}", where=where, sender=PEOPLE[person], slot=slot, choice=0, at=1.0)
    return await gateway.ingress.hear(gateway.known[where.platform], given)


async def asked(gateway: Gateway, where: Conversation, whose: str, *, approval: bool) -> tuple[int, Conversation]:
    """The slot of a question that somebody's run asks there."""
    who = gateway.access.principal(where.platform, PEOPLE[whose], STANDINGS[whose])
    record = await gateway.runtime.hermes.open_session(where, who, workspace="/", new=True)
    said = Inbound(
        source="test", source_id=record.id, principal=who, conversation=where, parts=(Text(text="Do it"),), received=1.0
    )
    purpose = "approval" if approval else "clarify"
    question = Asked(question=f"c1.{purpose}", text="May I?", choices=("yes",), purpose=purpose)
    async with gateway.runtime.hermes.holding(record.id) as journal:
        await journal.commit(RunStarted(), question)
    await gateway.runtime.store.inbox.accept(said, record.id, "nobody")  # Its run waits.
    content = Content(text=question.text, buttons=(YES,), question=question.question)
    letter = Letter(key=f"{record.id}:q", to=where, content=content, session=record.id)
    return await gateway.runtime.store.write(partial(gateway.runtime.store.outbox.put, letter=letter)), where


YES = Button(label="Yes", value="yes")
STANDINGS = {"owner": Standing.OWNER, "member": Standing.MEMBER, "guest": Standing.GUEST}

GROUP = "owners: ['1']\nmembers: ['7', '8']\ngroups: ['5']\n"
SECRET = "zebra crossing at midnight"
FOUND = "crossing at midnight"
"""What a search shows of it, which marks the word that was looked for."""


def roomy() -> FakePlatform:
    """A platform that shows a text as one message."""
    return FakePlatform(replace(ABILITIES, longest_message=20_000))


async def alone(here: Harness, text: str, user: str) -> str:
    return await here.ask(text, user=user, chat=user)


async def in_group(here: Harness, text: str, user: str) -> str:
    return await here.ask(text, user=user, chat="5", group=True, addressed=True)


def searching(heard: Heard) -> Say | Call:
    """Looks for what it is asked to look for, and says what it found."""
    if "find" in heard.last.text:
        return Call("session_search", {"query": "zebra"})
    return Say(f"Found: {heard.last.parts}" if heard.last.role is Role.TOOL else "Noted.")


@pytest.mark.parametrize("shared", ["false", "true"])
async def test_two_people_of_a_group_never_find_what_the_other_said_alone(tmp_path: Path, shared: str):
    async with harness(tmp_path, searching, f"{GROUP}shared: {shared}\n", roomy()) as here:
        await alone(here, f"Remember: {SECRET}", "7")
        assert FOUND in await alone(here, "find it", "7")

        for found in (
            await alone(here, "find it", "8"),
            await in_group(here, "find it", "8"),
            await in_group(here, "find it", "7"),  # Others read along.
        ):
            assert FOUND not in found


async def test_two_people_of_a_group_never_see_the_other_s_session(tmp_path: Path):
    async with harness(tmp_path, lambda _: Say("Noted."), GROUP, roomy()) as here:
        await alone(here, f"Remember: {SECRET}", "7")
        await alone(here, f"/title {SECRET}", "7")
        await in_group(here, "I am here too", "7")
        private = next(each for each in await here.store.sessions.list() if each.title == SECRET)

        for line in ("/sessions", f"/resume {private.id}", "/resume zebra", "/history", "/memory"):
            assert SECRET not in await in_group(here, line, "8")
            assert SECRET not in await alone(here, line, "8")
            assert SECRET not in await in_group(here, line, "7")  # Others read along.
        assert (await here.store.sessions.current("fake:group:5::7")).id != private.id
        assert SECRET in await alone(here, "/sessions", "7")


async def test_two_people_of_a_group_never_answer_what_the_other_is_asked(tmp_path: Path):
    script = [Call("terminal", {"command": "touch done; rm -rf build$NONE"}), Say("Done.")]
    async with harness(tmp_path, script, GROUP, roomy()) as here:
        question = await in_group(here, "Do it", "7")
        assert "/approve" in question
        (shown,) = here.platform.chats.of("5")

        await in_group(here, "/approve", "8")
        await here.platform.press(shown.id, 0, user="8")
        await eventually(
            lambda: here.platform.waiting.empty() and any("Only the person" in word for word in here.platform.words)
        )
        assert not [*(tmp_path / "home/workspace").rglob("done")]

        await in_group(here, "/approve", "7")
        await here.rest()
        assert [*(tmp_path / "home/workspace").rglob("done")]
