"""Whatever is done to a whole system, an open session's prefix keeps its bytes, also in the reviews of it, and each
request goes on from the one before it but where a compaction is in the log."""

import asyncio
import tempfile
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from bench.prefix import FILES, PLACE, RECORD, answer, meddle, prose, say
from hermes_agent.app.commands.command import Desk, perform
from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.system import System
from hermes_agent.core.chat import Inbound
from hermes_agent.core.events import Compacted, Entry, PrefixFrozen, ToolStarted
from hermes_agent.core.messages import Text
from hermes_agent.host.paths import Home
from hermes_agent.learning.reviewing import OPENING
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving

DEEDS = (
    "speak",
    "speak",
    "speak",
    "steer",
    "meddle",
    "configure",
    "switch",
    "start",
    "crash",
    "branch",
    "shorten",
    "review",
)


@dataclass
class Life:
    """What happens to one conversation."""

    home: Home
    work: Path
    server: ModelServer
    chance: Random
    session: str = ""
    log: list[Entry] = field(default_factory=list)

    def configure(self) -> None:
        self.home.config_file.write_text(
            f"model:\n  default: custom/m\n  base_url: {self.server.url}\n  window: 9000\n"
            f"agent:\n  max_turns: {self.chance.randint(50, 90)}\n"
            f"memory:\n  memory_char_limit: {self.chance.randint(1000, 3000)}\n  nudge_interval: 1\n"
        )

    async def start(self, deeds: list[str]) -> None:
        """One process: what is done in it, up to where it leaves or dies."""
        async with open_system(self.home, Options(queue="test")) as runtime:
            if not self.session:
                record = await runtime.hermes.open_session(PLACE, runtime.owner, workspace=str(self.work))
                self.session = record.id
            after = await runtime.store.history.last_number(self.session)
            if await runtime.hermes.resume(self.session):
                await self.follow(runtime, after)
            for deed in deeds:
                await self.do(runtime, deed)
            self.log = await runtime.store.history.entries(self.session)

    async def do(self, runtime: System, deed: str) -> None:
        match deed:
            case "speak" | "steer" | "crash":
                after = await runtime.store.history.last_number(self.session)
                await say(runtime, self.session, prose(self.chance, 40))
                if deed == "steer":
                    await say(runtime, self.session, prose(self.chance, 10))
                if deed == "crash":
                    await self.begun(runtime, after)  # the process leaves in the middle of the run
                else:
                    await self.follow(runtime, after)
            case "meddle":
                meddle(self.home, self.work, self.chance)
            case "configure":
                self.configure()
            case "switch":
                await self.type(runtime, f"/model custom/m{self.chance.randint(2, 9)}")
            case "branch":
                await self.type(runtime, "/branch")
            case "shorten":
                await self.type(runtime, "/compress")
            case "review":
                assert runtime.learner is not None
                await runtime.learner.run()

    async def type(self, runtime: System, line: str) -> None:
        record = await runtime.hermes.record(self.session)
        inbound = Inbound(
            source="cli",
            source_id=runtime.ids.short(),
            principal=runtime.owner,
            conversation=PLACE,
            parts=(Text(text=line),),
            received=0.0,
        )
        done = await perform(Desk(runtime=runtime, record=record, inbound=inbound, busy=False))
        assert done is not None
        self.session = done.session or self.session

    async def follow(self, runtime: System, after: int) -> None:
        async with aclosing(runtime.hermes.follow(self.session, after)) as events:
            async for _ in events:
                pass

    async def begun(self, runtime: System, after: int) -> None:
        async with aclosing(runtime.hermes.follow(self.session, after)) as events:
            async for seen in events:
                if isinstance(seen.event, ToolStarted):
                    return


async def live(folder: Path, deeds: list[str], seed: int) -> tuple[Life, ModelServer]:
    """All of it: a start of the program after each that ends one."""
    chance = Random(seed)
    home, work = Home(root=folder / "home", base=folder / "home").ensure(), folder / "work"
    work.mkdir()
    for number in range(FILES):
        (work / f"part{number}.txt").write_text(prose(chance, 150))
    async with serving(openai_model(answer, keys=())) as server:
        life = Life(home, work, server, chance)
        life.configure()
        rounds: list[list[str]] = [["speak"]]
        for deed in deeds:
            if deed != "start":
                rounds[-1].append(deed)
            if deed in ("start", "crash"):
                rounds.append([])
        for each in [*rounds, ["speak"]]:
            await life.start(each)
    return life, server


def requests(server: ModelServer) -> list[tuple[bytes, bytes, list[bytes]]]:
    """Of each request of the conversation the raw bytes of its system prompt, its tools, its messages."""
    found = []
    for exchange in server.exchanges:
        body = msgspec.json.decode(exchange.request.body, type=dict[str, msgspec.Raw])
        system, *messages = [bytes(raw) for raw in msgspec.json.decode(body["messages"], type=list[msgspec.Raw])]
        if RECORD.encode() not in system:
            found.append((system, bytes(body["tools"]), messages))
    return found


@pytest.mark.slow
@pytest.mark.timeout(300)
@settings(max_examples=settings.default.max_examples // 6, suppress_health_check=[HealthCheck.too_slow])
@given(deeds=st.lists(st.sampled_from(DEEDS), min_size=3, max_size=12), seed=st.integers(0, 1000))
def test_the_prefix_of_an_open_session_never_changes(deeds: list[str], seed: int):
    with tempfile.TemporaryDirectory() as folder:
        life, server = asyncio.run(live(Path(folder), deeds, seed))
    sent = requests(server)
    compacted = sum(isinstance(entry.event, Compacted) for entry in life.log)

    talk = [each for each in sent if not any(OPENING.encode() in message for message in each[2])]

    assert len({(system, tools) for system, tools, _ in sent}) == 1
    assert sum(isinstance(entry.event, PrefixFrozen) for entry in life.log) == 1
    assert sum(after[: len(before)] != before for (_, _, before), (_, _, after) in pairwise(talk)) <= compacted
