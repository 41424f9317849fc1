"""Whatever happens in a session, every request begins with the bytes of the one before it."""

import asyncio
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hermes_agent.agent.prompt import Environment, SessionPrompt
from hermes_agent.app.environment_prompt import environment_of
from hermes_agent.core.chat import Busy
from hermes_agent.core.events import Outcome
from hermes_agent.host.http import Http
from hermes_agent.providers.broker import Broker
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say, Think
from hermes_agent.providers.route import choose
from hermes_agent.providers.routing.chain import single
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.replay.seam import Book, RunLedger
from hermes_agent.testing.model_servers import KEY, ModelServer, openai_model, serving
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent import harness as harnesses
from tests.agent.harness import Harness
from tests.doubles.model_servers import anthropic_model

WIRES = {"openai/gpt-5.2": openai_model, "anthropic/claude-opus-5-5": anthropic_model}
MARK = re.compile(rb',?"cache_control":\{[^}]*\}')
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@dataclass(frozen=True)
class Turn:
    """What the model does in one turn: think, call so often, or (no calls) speak; what is said while its calls run."""

    calls: int
    result: str
    thinks: bool = False
    steered: str = ""
    queued: str = ""
    crash: bool = False


TURNS = st.builds(
    Turn,
    calls=st.integers(0, 3),
    result=WORDS,
    thinks=st.booleans(),
    steered=st.just("") | WORDS,
    queued=st.just("") | WORDS,
    crash=st.sampled_from([False, False, False, True]),
)


@dataclass
class Wired(Harness):
    """A house whose model is asked over a socket, and whose surroundings change."""

    server: ModelServer | None = None
    route: str = ""
    http: Http = field(default_factory=Http)
    day: float = 1_800_000_000.0

    async def agent(self, record, journal):
        configured = ModelSettings(default=self.route, base_url=self.server.url)
        ledger = RunLedger(Book(store=self.store, clock=self.clock), journal, record)
        broker = Broker(single(choose(configured, lambda _: KEY), self.http, self.clock, configured), ledger)

        async def look() -> Environment:
            return environment_of(home=self.path, workspace=self.path, now=self.day)

        schemas = tuple(tool.schema for tool in self.tools)
        made = await super().agent(record, journal)
        return replace(made, model=broker, prompt=SessionPrompt(self.store, schemas, look))

    def change_everything(self) -> None:
        """Another soul, day, context and toolbox: what a person may do between two starts."""
        self.day += 86_400
        (self.path / "SOUL.md").write_text(f"I was rewritten at {self.day}.")
        (self.path / "AGENTS.md").write_text(f"Rules of {self.day}.")
        self.tools = (*self.tools, harnesses.tool(f"more_{len(self.tools)}"))


class Play:
    """The script of the model and the tool of one example."""

    def __init__(self, turns: list[Turn]) -> None:
        self.turns = turns
        self.harness: Wired | None = None
        self.crashed: set[int] = set()
        self.told: set[int] = set()

    def answer(self, heard: Heard) -> list[Piece]:
        spoken = sum(message.role == "assistant" for message in heard.messages)
        turn = self.turns[spoken] if spoken < len(self.turns) else Turn(calls=0, result="over")
        thoughts = [Think("Let me see.")] if turn.thinks else []
        if not turn.calls:
            return [*thoughts, Say(f"Reply: {turn.result}")]
        return [*thoughts, *(Call("look", {"turn": spoken, "n": n}) for n in range(turn.calls))]

    async def look(self, arguments, context) -> str:
        number = arguments["turn"]
        turn = self.turns[number]
        if number not in self.told:
            self.told.add(number)
            if turn.steered:
                await self.harness.tell(turn.steered)
            if turn.queued:
                await self.harness.tell(turn.queued, busy=Busy.QUEUE)
        if turn.crash and number not in self.crashed:
            self.crashed.add(number)
            await asyncio.Event().wait()
        return turn.result


async def play(folder: Path, route: str, serve: Callable[..., ModelServer], turns: list[Turn]) -> ModelServer:
    """Let it happen; three messages are said in three starts, and each crash is one more."""
    script = Play(turns)
    async with serving(serve(ScriptedModel(script.answer))) as server:
        harness = Wired(folder, ScriptedModel([]), (harnesses.Piece("look", script.look),), server=server, route=route)
        script.harness = harness
        for said in ("One", "Two", "Three"):
            await start(harness, said)
            harness.change_everything()
        await harness.http.close()
    return server


async def start(harness: Wired, said: str) -> None:
    """Say it, and start again after each crash until it is answered."""
    crashes = -1
    while True:
        async with harness.open():
            if crashes < 0:
                after = await harness.store.history.last_number(harness.session)
                await harness.tell(said)
            else:
                assert await harness.hermes.resume(harness.session)
            ending = asyncio.ensure_future(harness.ended(after))
            crash = asyncio.ensure_future(crashed(harness))
            await asyncio.wait((ending, crash), return_when=asyncio.FIRST_COMPLETED)
            over = ending.done()
            for task in (ending, crash):
                task.cancel()
            if over:
                assert ending.result().outcome is Outcome.ANSWERED
                return
        crashes += 1
        harness.change_everything()


async def crashed(harness: Wired) -> None:
    """Return when a call hangs that is to die with its process."""
    script = harness.tools[0].body.__self__
    known = len(script.crashed)
    while len(script.crashed) == known:
        await asyncio.sleep(0.001)


def parts(server: ModelServer) -> list[tuple[bytes, bytes, list[bytes]]]:
    """Of each request the raw bytes of its system prompt, its tools and its messages."""
    found = []
    for exchange in server.exchanges:
        body = msgspec.json.decode(MARK.sub(b"", exchange.request.body), type=dict[str, msgspec.Raw])
        messages = [bytes(raw) for raw in msgspec.json.decode(body["messages"], type=list[msgspec.Raw])]
        system = bytes(body["system"]) if "system" in body else messages.pop(0)
        found.append((system, bytes(body["tools"]), messages))
    return found


@pytest.mark.timeout(120)
@pytest.mark.parametrize("route", WIRES)
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(turns=st.lists(TURNS, min_size=1, max_size=6))
def test_every_request_begins_with_the_bytes_of_the_one_before(route, turns):
    with tempfile.TemporaryDirectory() as folder:
        server = asyncio.run(play(Path(folder), route, WIRES[route], turns))
    requests = parts(server)

    assert len(requests) >= 3
    assert len({(system, tools) for system, tools, _ in requests}) == 1
    assert {exchange.status for exchange in server.exchanges} == {200}
    for (_, _, before), (_, _, after) in pairwise(requests):
        assert after[: len(before)] == before
