"""A broker in front of a model server, and short words to ask through it."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.messages import (
    Delta,
    Image,
    Message,
    ModelRequest,
    Prefix,
    Remark,
    Reply,
    Retrying,
    Role,
    Text,
    ToolResult,
    ToolSchema,
    said,
)
from hermes_agent.core.spending import Grant, Limit, Scope, Standing, grant, nanos
from hermes_agent.host.http import Http
from hermes_agent.providers.broker import Broker, CallOpened, CallSettled, Ledger
from hermes_agent.providers.demo.script import Heard
from hermes_agent.providers.route import NOTHING, Route, choose
from hermes_agent.providers.routing.chain import BriefCoolDowns, Chain, leg_of, single
from hermes_agent.providers.routing.endpoint import Sizes
from hermes_agent.providers.settings import CredentialSettings, ModelOverride, ModelSettings
from hermes_agent.testing.model_servers import KEY, ModelServer, openai_model, serving
from hermes_agent.testing.scripted import Script, Step
from tests.doubles.model_servers import anthropic_model, bedrock_model, gemini_model, responses_model

PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
READ = ToolSchema(name="read_file", description="Read a file.", parameters=PARAMETERS)
WRITE = ToolSchema(name="write_file", description="Write a file.", parameters=PARAMETERS)
PREFIX = Prefix(system="You are a careful assistant.", tools=(READ, WRITE), hash="0123456789abcdef")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A dialect under test: how a server of it is made, a model that speaks it, and thinking as the dialect keeps it,
    which holds `c2ln`.

    `text_arguments`: arguments arrive as text, which may be no JSON. `forbids`: a field of the request forbids tools.
    `counts_writes`: usage tells what was written to a cache. `counts_thinking`: and what was thought. `mark` is how a
    request marks what to cache, `tail` what follows the messages.
    """

    name: str
    model: str
    serve: Callable[..., ModelServer]
    opaque: str = "c2ln"
    text_arguments: bool = True
    forbids: bool = True
    counts_writes: bool = False
    counts_thinking: bool = True
    mark: bytes = b',"cache_control":{"type":"ephemeral"}'
    tail: bytes = b'"stream":true'


DIALECTS = (
    Spoken(name="openai_chat", model="openai/gpt-5.2", serve=openai_model),
    Spoken(
        name="openai_responses",
        model="openai/gpt-5.6-sol",
        serve=responses_model,
        opaque='{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2ln"}',
    ),
    Spoken(name="anthropic", model="anthropic/claude-opus-5-5", serve=anthropic_model, counts_writes=True),
    Spoken(
        name="gemini",
        model="gemini/gemini-3.8-flash",
        serve=gemini_model,
        text_arguments=False,
        tail=b'"generationConfig":',
    ),
    Spoken(
        name="bedrock",
        model="bedrock/global.anthropic.claude-sonnet-4-5-20250929-v1:0",
        serve=bedrock_model,
        forbids=False,
        counts_writes=True,
        counts_thinking=False,
        mark=b',{"cachePoint":{"type":"default"}}',
        tail=b'"inferenceConfig":',
    ),
)


@dataclass(slots=True)
class Book:
    """A ledger in memory, which grants what its limit leaves: `money` in US dollars for all calls together."""

    opened: list[CallOpened] = field(default_factory=list)
    settled: list[CallSettled] = field(default_factory=list)
    sizes: Sizes = field(default_factory=Sizes)
    money: float | None = None
    granted: list[Grant] = field(default_factory=list)

    async def open(self, call: CallOpened) -> Grant:
        money = None if self.money is None else nanos(self.money)
        granted = grant(call.bid, [Standing(limit=Limit(scope=Scope.CALL, money=money))])
        self.opened.append(call)
        self.granted.append(granted)
        return granted

    async def complete(self, call: CallSettled) -> None:
        self.settled.append(call)


@dataclass(slots=True, kw_only=True)
class Talk:
    """A broker, its server and its book."""

    broker: Broker
    server: ModelServer
    book: Book
    messages: list[Message] = field(default_factory=lambda: [said("Hello")])

    def enter_into(self, ledger: Ledger) -> None:
        """Have the calls entered there from now on."""
        line = self.broker._router.primary
        line._ledger = ledger

    def request(self, **changes: object) -> ModelRequest:
        turn = len(self.server.exchanges) + 1
        plain = ModelRequest(
            call_id=f"call{turn}",
            session="20260101_000000_abcdef",
            run="run",
            turn=turn,
            purpose="chat",
            prefix=PREFIX,
            messages=self.messages,
        )
        return replace(plain, **changes)

    async def listen(self, **changes: object) -> list[Delta | Reply]:
        """Everything that one question brings; the reply joins the conversation."""
        heard = [item async for item in self.broker.ask(self.request(**changes))]
        assert isinstance(heard[-1], Reply)
        assert not any(isinstance(item, Reply) for item in heard[:-1])
        self.messages.append(heard[-1].message)
        return heard

    async def ask(self, **changes: object) -> Reply:
        reply = (await self.listen(**changes))[-1]
        assert isinstance(reply, Reply)
        return reply

    def say(self, text: str) -> None:
        self.messages.append(said(text))

    def answer(self, *results: ToolResult) -> None:
        self.messages.extend(Message(role=Role.TOOL, parts=(result,)) for result in results)


@asynccontextmanager
async def talking(
    spoken: Spoken,
    script: Script,
    *,
    clock: Clock | None = None,
    settings: ModelSettings | None = None,
    models: Mapping[str, ModelOverride] = NOTHING,
    **server: object,
) -> AsyncIterator[Talk]:
    """A conversation with a server of this dialect; attempts follow each other almost at once."""
    async with (
        serving(spoken.serve(script, **server)) as model,
        asking(spoken, model, clock=clock, settings=settings, models=models) as talk,
    ):
        yield talk


@asynccontextmanager
async def asking(
    spoken: Spoken,
    model: ModelServer,
    *,
    clock: Clock | None = None,
    settings: ModelSettings | None = None,
    models: Mapping[str, ModelOverride] = NOTHING,
) -> AsyncIterator[Talk]:
    """A conversation with a server that is served already."""
    settings = replace(settings or ModelSettings(), default=spoken.model, base_url=model.url)
    http, book = Http(), Book()
    chain = single(choose(settings, lambda _: KEY, models), http, clock or HastyClock(), settings)
    broker = Broker(replace(chain, chance=lambda: 0.5), book)
    try:
        yield Talk(broker=broker, server=model, book=book)
    finally:
        await http.close()


def in_turn(*steps: Step | Callable[[Heard], Step]) -> Callable[[Heard], Step]:
    """A script that gives one step after the other, whatever it hears; the last one again and again."""
    left = list(steps)

    def script(heard: Heard) -> Step:
        step = left.pop(0) if len(left) > 1 else left[0]
        return step(heard) if callable(step) else step

    return script


@dataclass(slots=True, kw_only=True)
class Chained(Talk):
    """A broker in front of several servers; `servers` holds them in the chain's order."""

    servers: list[ModelServer]
    cool_downs: BriefCoolDowns
    clock: "HastyClock"


@asynccontextmanager
async def chained(
    *scripts: Script, keys: dict[str, str] | None = None, settings: ModelSettings | None = None, window: int = 200_000
) -> AsyncIterator[Chained]:
    """A conversation with a chain: openai/gpt-5.2, then anthropic/claude-opus-5-5 and others, each behind a server.

    `keys` are the first model's credentials, by name; the servers let in "good" alone.
    """
    async with AsyncExitStack() as closing:
        servers, legs, http, clock = [], [], Http(), HastyClock()
        closing.push_async_callback(http.close)
        for number, script in enumerate(scripts):
            spoken = DIALECTS[0] if number % 2 == 0 else next(each for each in DIALECTS if each.name == "anthropic")
            server = await closing.enter_async_context(serving(spoken.serve(script, keys=("good",))))
            model = spoken.model if number < 2 else f"{spoken.model}-{number}"
            route = choose(ModelSettings(default=model, base_url=server.url, window=window), lambda _: "good")
            names = {"KEY": "good"} if number or keys is None else keys
            legs.append(
                leg_of(
                    replace(route, key=next(iter(names.values()))), names.get, CredentialSettings(names=tuple(names))
                )
            )
            servers.append(server)
        cool_downs, book = BriefCoolDowns(), Book()
        chain = Chain(
            legs=tuple(legs),
            http=http,
            clock=clock,
            settings=settings or ModelSettings(max_retries=1),
            cool_downs=cool_downs,
            chance=lambda: 0.5,
        )
        broker = Broker(chain, book)
        yield Chained(broker=broker, server=servers[0], book=book, servers=servers, cool_downs=cool_downs, clock=clock)


class HastyClock(SystemClock):
    """The machine's clock, on which nobody sleeps; `slept` holds how long they would have. `ahead` is by how many
    seconds it is wrong."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def route_to(model: str, base_url: str = "http://127.0.0.1:9/v1", **settings: object) -> Route:
    """A route that nobody needs to listen on."""
    return choose(ModelSettings(default=model, base_url=base_url, **settings), lambda _: KEY)


def result(
    call_id: str, text: str, *, name: str = "read_file", is_error: bool = False, image: bool = False
) -> ToolResult:
    parts = (Text(text=text), Image(data=PIXEL)) if image else (Text(text=text),)
    return ToolResult(call_id=call_id, name=name, parts=parts, is_error=is_error)


def remarks(heard: Sequence[Delta | Reply]) -> list[str]:
    return [item.text for item in heard if isinstance(item, Remark)]


def retries(heard: Sequence[Delta | Reply]) -> list[Retrying]:
    return [item for item in heard if isinstance(item, Retrying)]
