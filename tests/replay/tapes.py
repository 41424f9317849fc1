"""Small recordings of one session's model and tools, without a system around them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from hermes_agent.core.clock import SystemClock
from hermes_agent.core.effects import Location
from hermes_agent.core.errors import UnknownTool
from hermes_agent.core.events import Outcome
from hermes_agent.core.messages import Message, Model, ModelRequest, Trust, said
from hermes_agent.core.section import Section, freeze
from hermes_agent.core.spending import Grant, Limits, Rules
from hermes_agent.core.tool import Answer, Question, Tool
from hermes_agent.providers.broker import CallOpened, CallSettled, Ledger
from hermes_agent.providers.routing.endpoint import Sizes
from hermes_agent.replay.cassette import Redact, read_cassette
from hermes_agent.replay.lines import Process, RunBegun, RunOver
from hermes_agent.replay.recorder import Recorder
from hermes_agent.replay.replayer import LiveReplayer, Replay, Replayer, player_of

SESSION = "s1"
PROCESS = Process(queue="cli", attended=True, rules=Rules())


class Book:
    """A ledger that remembers."""

    def __init__(self) -> None:
        self.rows: list[CallOpened | CallSettled] = []
        self.sizes = Sizes()

    async def open(self, call: CallOpened) -> Grant:
        self.rows.append(call)
        return Grant()

    async def complete(self, call: CallSettled) -> None:
        self.rows.append(call)


def request(*words: str, messages: list[Message] | None = None, **more: object) -> ModelRequest:
    fields = {"call_id": "c1", "session": SESSION, "run": "r1", "turn": 1, "purpose": "chat"}
    prefix = freeze((Section(name="identity", text="You are a test."),), ())
    shown = [said(word) for word in words] if messages is None else messages
    return ModelRequest(**{**fields, "prefix": prefix, "messages": shown, **more})


def recorder(folder: Path, redact: Redact = str) -> Recorder:
    made = Recorder(folder / "tape.jsonl", SystemClock())
    made.start(redact, PROCESS)
    begin(made)
    return made


def begin(recorder: Recorder) -> None:
    track = recorder.track(SESSION)
    track.add(RunBegun(track=track.name, limits=Limits(), effort="medium"))
    track.stops.begun()


async def model_of(recorder: Recorder, model: Model, book: Ledger | None = None) -> Model:
    async def live(_ledger: Ledger) -> Model:
        return model

    return await recorder.model(SESSION, "", book or Book(), live)


def over(recorder: Recorder, outcome: Outcome = Outcome.ANSWERED) -> None:
    recorder.file.add(RunOver(track="1", outcome=outcome, number=1, released=True))
    recorder.file.close()


async def player(folder: Path, **how: bool | int | str) -> Replayer | LiveReplayer:
    path = folder / "tape.jsonl"
    made = player_of(read_cassette(path), Replay(**how))
    if not made.how.is_live and not made.how.nearest:
        await made.begin(SESSION)
    return made


class Context:
    """A call's surroundings that remember what was shown and asked."""

    session = SESSION
    workspace = "/w"
    speaker = "cli:me"
    attach = False
    trust = Trust.CLEAN
    begun_at = Location()
    run = ""

    def __init__(self, call: str) -> None:
        self.key = f"{SESSION}-{call}"
        self.shown: list[str] = []
        self.asked: list[str] = []
        self.used: list[tuple[str, dict[str, Any]]] = []

    def ends(self) -> bool:
        return True

    def seconds_left(self) -> float | None:
        return None

    def progress(self, text: str) -> None:
        self.shown.append(text)

    async def ask(self, question: Question) -> str:
        self.asked.append(question.text)
        return "yes"

    async def hold(self, handle: str) -> None:
        self.begun_at = Location(handle=handle)

    async def use(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        self.used.append((name, dict(arguments)))
        return Answer(parts=())

    def delegating(self, goals: Mapping[str, str]) -> AbstractAsyncContextManager[None]:
        raise AssertionError(goals)


class Box:
    """Tools by name."""

    def __init__(self, *tools: Tool) -> None:
        self.tools = {tool.schema.name: tool for tool in tools}

    def resolve(self, name: str, arguments: Mapping[str, Any]) -> tuple[Tool, Mapping[str, Any]]:
        if name not in self.tools:
            raise UnknownTool(f"There is no tool `{name}`.")
        return self.tools[name], arguments
