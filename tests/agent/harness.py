"""A small system around the loop: a real store in a temporary folder, a scripted model, tools made of functions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes_agent.agent.agent import Agent, Closing, Hook, Labels
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.prompt import Environment, SessionPrompt
from hermes_agent.core.chat import Busy, Conversation, Inbound, Principal, Standing
from hermes_agent.core.clock import Clock, RandomIds, SystemClock
from hermes_agent.core.effects import Capability, Effect, Location
from hermes_agent.core.errors import BadArguments, UnknownTool
from hermes_agent.core.events import Entry, MessageTaken, Replied, RunEnded, RunStarted, Seen, ToolStarted
from hermes_agent.core.messages import (
    Delta,
    Message,
    Model,
    ModelRequest,
    Origin,
    Reply,
    Role,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    ToolSchema,
    Usage,
    said,
)
from hermes_agent.core.spending import Budget, Limits
from hermes_agent.core.tool import Answer, CallContext, CallFacts
from hermes_agent.providers.demo.script import Call
from hermes_agent.replay.seam import Seam
from hermes_agent.runs.front import Hermes
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.effects import Intent
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.workers import Timings

OWNER = Principal(platform="cli", user="me", standing=Standing.OWNER)
PLACE = Conversation(platform="cli", chat="here")
Body = Callable[[Mapping[str, Any], CallContext], Awaitable[str]]


@dataclass
class Piece:
    """A tool made of an async function of (arguments, context)."""

    name: str
    body: Body
    effect: Effect = Effect.READS
    path: str = ""
    needs: frozenset[Capability] = frozenset()
    depends_on: tuple[str, ...] = ()
    calls: list[dict[str, Any]] = field(default_factory=list)

    @property
    def schema(self) -> ToolSchema:
        return ToolSchema(name=self.name, description=self.name, parameters={"type": "object"})

    def facts(self, arguments: Mapping[str, Any], workspace: str) -> CallFacts:
        if "bad" in arguments:
            raise BadArguments("`$.bad`: not allowed")
        path = str(arguments.get(self.path, "")) if self.path else ""
        summary = f"{self.name} {dict(arguments)}"
        paths = (path,) if path else None
        return CallFacts(effect=self.effect, paths=paths, summary=summary, depends_on=self.depends_on)

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> Answer:
        self.calls.append(dict(arguments))
        return Answer(parts=(Text(text=await self.body(arguments, context), origin=Origin.TOOL),))


class Box:
    """The toolbox of a test."""

    def __init__(self, *tools: Piece) -> None:
        self.tools = {tool.name: tool for tool in tools}

    def resolve(self, name: str, arguments: Mapping[str, Any]) -> tuple[Piece, Mapping[str, Any]]:
        if name not in self.tools:
            raise UnknownTool(f"There is no tool `{name}`.", hint=f"There are: {', '.join(self.tools)}.")
        return self.tools[name], arguments


class Booked:
    """A model that is asked once the log is committed, as a broker's book sees to it."""

    def __init__(self, model: Model, journal: Journal) -> None:
        self._model, self._journal = model, journal

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    async def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        await self._journal.settled()
        async with aclosing(self._model.ask(request)) as items:
            async for item in items:
                yield item


@dataclass
class Harness:
    """What a test works with."""

    path: Path
    model: Model
    tools: tuple[Piece, ...] = ()
    limits: Callable[[], Limits] = Limits
    hooks: tuple[Hook, ...] = ()
    closing: tuple[Closing, ...] = ()
    attended: bool = True
    location: Callable[[str], Awaitable[Location]] | None = None
    labels: Labels | None = None
    clock: Clock = field(default_factory=SystemClock)
    ids: RandomIds = field(default_factory=RandomIds)
    surroundings: Environment = field(default_factory=Environment)
    timings: Timings | None = None
    store: Store | None = None
    hermes: Hermes | None = None
    session: str = ""
    access: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.access.set()

    @asynccontextmanager
    async def building(self, record: SessionRecord, journal: Journal) -> AsyncIterator[Agent]:
        """The agent, as long as a block."""
        yield await self.agent(record, journal)

    async def agent(self, record: SessionRecord, journal: Journal) -> Agent:
        """No run begins while the doors are closed."""
        await self.access.wait()

        async def surroundings() -> Environment:
            return self.surroundings

        schemas = tuple(tool.schema for tool in self.tools)
        return Agent(
            model=Booked(self.model, journal),
            tools=Box(*self.tools),
            prompt=SessionPrompt(self.store, schemas, surroundings),
            budget=Budget(limits=self.limits()),
            clock=self.clock,
            ids=self.ids,
            hooks=self.hooks,
            closing=self.closing,
            attended=self.attended,
            location=self.location,
            labels=self.labels,
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Harness]:
        self.store = await open_store(str(self.path / "hermes.db"), clock=self.clock, timings=self.timings)
        self.hermes = Hermes(store=self.store, build=self.building, seam=Seam(self.clock, self.ids))
        try:
            if not self.session:
                record = await self.hermes.open_session(PLACE, OWNER, workspace=str(self.path))
                self.session = record.id
            yield self
        finally:
            await self.hermes.close()

    async def tell(
        self, text: str, *, busy: Busy = Busy.STEER, answers: str = "", resumes: bool = False, message_id: str = ""
    ) -> None:
        inbound = self.inbound(text, busy=busy, answers=answers, resumes=resumes, message_id=message_id)
        await self.hermes.submit(inbound, self.session)

    def inbound(
        self, text: str, *, busy: Busy = Busy.STEER, answers: str = "", resumes: bool = False, message_id: str = ""
    ) -> Inbound:
        return Inbound(
            source="test",
            source_id=message_id or self.ids.short(),
            principal=OWNER,
            conversation=PLACE,
            parts=(Text(text=text, origin=Origin.OWNER),) if text else (),
            received=self.clock.now(),
            busy=busy,
            answers=answers,
            resumes=resumes,
        )

    async def say(self, text: str, **more: bool | str | Busy) -> RunEnded:
        """Submit and wait for the end of the run."""
        after = await self.store.history.last_number(self.session)
        await self.tell(text, **more)
        return await self.ended(after)

    async def ended(self, after: int = 0) -> RunEnded:
        seen = [each async for each in self.hermes.follow(self.session, after)]
        assert isinstance(seen[-1].event, RunEnded)
        return seen[-1].event

    async def rest(self) -> None:
        """Return when the session has no run here, which is a moment after the end of its run was shown."""
        while self.hermes.runs(self.session):
            await asyncio.sleep(0.001)

    async def until(self, kind: type, after: int = 0) -> Seen:
        """The next event of a kind."""
        async with aclosing(self.hermes.watch(self.session, after)) as events:
            async for seen in events:
                if isinstance(seen.event, kind):
                    return seen
        raise AssertionError("the events ended")

    async def log(self) -> list[Entry]:
        return await self.store.history.entries(self.session)

    async def kinds(self) -> list[str]:
        return [entry.event.kind for entry in await self.log()]

    async def numbers(self, kind: str) -> list[int]:
        """The places in the log of the events of that kind."""
        return [entry.number for entry in await self.log() if entry.event.kind == kind]

    async def transcript(self) -> list[str]:
        view = await self.hermes.view(self.session)
        return [f"{message.role}: {words(message)}" for message in view.messages]


async def interrupted(harness: Harness, *calls: Call, begun: bool = True) -> list[ToolCall]:
    """Leave in the log what a process leaves that dies after the reply with these calls, and after the intents of those
    that had `begun`."""
    made = [
        ToolCall(id=call.id or f"call_{index}", name=call.name, arguments=call.arguments)
        for index, call in enumerate(calls)
    ]
    async with harness.hermes.holding(harness.session) as journal:
        journal.session.run = "earlier"
        await journal.commit(RunStarted(), MessageTaken(message=said("Go"), inbox=1))
        await journal.commit(replied(Message(role=Role.ASSISTANT, parts=tuple(made))))
        for call in made:
            tool = Box(*harness.tools).tools[call.name]
            if begun and tool.effect is not Effect.READS:
                await intended(journal, call, tool.effect)
    return made


async def intended(journal: Journal, call: ToolCall, effect: Effect) -> None:
    """The intent of a call, in the log and among the effects."""
    started = ToolStarted(turn=1, call_id=call.id, tool=call.name, effect=effect, summary=call.name)
    key = f"{journal.session.id}-{call.id}"
    intent = Intent(call_id=call.id, tool=call.name, effect=effect, key=key, summary=call.name)
    await journal.commit(started, changes=[journal.intend(intent)])


def replied(message: Message, turn: int = 1, cost: float | None = 0.0) -> Replied:
    """A reply as the log has it."""
    usage = Usage(input=10, output=5)
    stop = StopReason.TOOL_CALLS if message.tool_calls else StopReason.END
    return Replied(
        turn=turn, call_id="c", message=message, stop=stop, usage=usage, provider="p", model="m", cost=cost, seconds=0.1
    )


def words(message: Message) -> str:
    """What a message says, tool traffic included."""
    said = [message.text] if message.text else []
    said += [f"{call.name}({dict(call.arguments)})" for call in message.tool_calls]
    said += [part.text for part in message.parts if isinstance(part, ToolResult)]
    return " ".join(said)


def tool(
    name: str, answer: str = "ok", effect: Effect = Effect.READS, *, path: str = "", seconds: float = 0.0
) -> Piece:
    """A tool that answers the same every time, after so many seconds."""

    async def body(_: Mapping[str, Any], __: CallContext) -> str:
        if seconds:
            await asyncio.sleep(seconds)
        return answer

    return Piece(name=name, body=body, effect=effect, path=path)
