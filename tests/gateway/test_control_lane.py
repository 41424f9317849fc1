"""While one chat brings a large file slowly, stops and buttons of other chats act at once, on each platform."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.gateway.email.reading import read_apart
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.gateway.server import Gateway
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving
from hermes_agent.testing.scripted import Step
from tests.app.place import settle_home
from tests.contracts.channels import MAKERS, Stage
from tests.doubles.email import OWN, MailPlatform
from tests.gateway.harness import eventually
from tests.gateway.test_media_in import enclose

AT_ONCE = 0.2
"""Seconds that a control may take."""
TRIES = 3
"""The machine of the tests is busy: the best of so many counts."""
MB = 1_000_000
SIZES = {"email": 20 * MB}
"""A mail of 50 MB is not taken in whole."""
QUESTION = {"question": "Which?", "choices": ["red", "blue"]}


def answer(heard: Heard) -> Step:
    if "ask" in heard.messages[-1].text:
        return Call("clarify", QUESTION)
    return Hang() if "hang" in heard.messages[-1].text else Say("Yes.")


class Place:
    """A gateway on one platform, and the names of its chats with one person: A is where the file comes."""

    def __init__(self, stage: Stage, gateway: Gateway, model: ModelServer) -> None:
        self.stage = stage
        self.gateway = gateway
        self.model = model

    async def say(self, text: str, chat: str) -> str:
        if not isinstance(self.stage.double, MailPlatform):
            return await self.stage.double.say(text, chat=chat, user=self.stage.person)
        thread = "film.mp4@people.test" if chat == self.stage.chat else ""
        return await self.stage.double.say(text, chat=chat, user=chat, thread=thread)

    async def stopped(self, chat: str) -> float:
        """Seconds from `/stop` to its answer in the outbox."""
        outbox, began = self.gateway.runtime.store.outbox, time.perf_counter()
        source_id = await self.say("/stop", chat)
        key = f"answer:{self.stage.kind.name}:{source_id}"

        async def done() -> bool:
            return await outbox.find(key) is not None

        await eventually(done)
        return time.perf_counter() - began

    async def bring(self, seconds: float) -> None:
        """The file begins to come in chat A."""
        double, name = self.stage.double, self.stage.kind.name
        if isinstance(double, MailPlatform):
            double.folder.slow = seconds * MB / SIZES["email"]
        else:
            double.slow = seconds
        await enclose(self.stage, "film.mp4", "video/mp4", b"x" * SIZES.get(name, 50 * MB))
        await eventually(lambda: bool(self.gateway.ingress.downloads._patience))


async def reading(name: str) -> float:
    """Seconds that a mail takes which is read in a process of its own, on a machine that is busy with others too."""
    took = [0.0]
    for _ in range(TRIES if name == "email" else 0):
        began = time.perf_counter()
        await read_apart(b"From: ann@people.test\r\n\r\n/stop\r\n", OWN)
        took.append(time.perf_counter() - began)
    return 2 * max(took)


def chat(stage: Stage, number: int) -> str:
    """Another chat with the same person; by mail with another one."""
    match stage.kind.name:
        case "email":
            return f"p{number}@people.test"
        case "matrix":
            return f"!b{number}:hermes.test"
    return f"{stage.chat[:-1]}{number}" if stage.kind.name == "slack" else f"{number}"


@pytest.fixture(params=["discord", "email", "matrix", "slack", "telegram"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    async with MAKERS[request.param](tmp_path) as made, opened(made, tmp_path) as place:
        yield place


@asynccontextmanager
async def opened(made: Stage, folder: Path) -> AsyncIterator[Place]:
    stage = replace(made, kind=replace(made.kind, make=lambda _: made.channel))
    people = [stage.person, *(chat(stage, number) for number in range(20, 40) if stage.kind.name == "email")]
    home = Home(root=folder / "home", base=folder / "home")
    async with serving(openai_model(answer, keys=())) as model:
        settle_home(home.root, model.url)
        with home.config_file.open("a") as file:
            rules = f"{{enabled: true, owners: {people}}}"
            file.write(f"gateway:\n  largest_file_mb: 60\n  channels:\n    {stage.kind.name}: {rules}\n")
        async with open_gateway(home, {stage.kind.name: stage.kind}) as gateway:
            yield Place(stage, gateway, model)


@pytest.mark.timeout(90)
async def test_a_stop_and_a_button_act_at_once_while_another_chat_brings_a_large_file(place: Place):
    kind, gateway = place.stage.kind, place.gateway
    stops = [chat(place.stage, number) for number in range(20, 20 + TRIES)]
    asks = [chat(place.stage, number) for number in range(30, 30 + TRIES)] if kind.abilities.buttons else []
    for each in stops:
        await place.say("hang", each)
    for each in asks:
        await place.say("ask", each)
    await eventually(lambda: len(place.model.asked) == len(stops) + len(asks))
    await eventually(lambda: all(place.stage.double.chats.of(each) for each in asks), 30)
    await place.bring(60.0)

    took = [await place.stopped(each) for each in stops]
    assert min(took) < AT_ONCE + await reading(kind.name), took

    pressed: list[float] = []
    for each in asks:
        asked, began = len(place.model.asked), time.perf_counter()
        await place.stage.double.press(place.stage.double.chats.of(each)[-1].id, 0, user=place.stage.person)
        await eventually(lambda asked=asked: len(place.model.asked) > asked)
        pressed.append(time.perf_counter() - began)
    assert not pressed or min(pressed) < 2 * AT_ONCE, pressed

    source = await place.stopped(place.stage.chat)
    assert source < 10
    await eventually(lambda: not gateway.ingress.downloads._patience)
    await gateway.command_queue.drain()
    assert not any("Look" in message.text for request in place.model.asked for message in request.messages)
