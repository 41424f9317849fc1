"""Scripted model: answers from a script, as a `Model` by itself or behind a model server."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence

from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import (
    AuthRefused,
    BadRequest,
    EmptyReply,
    MalformedReply,
    ModelNotFound,
    Overloaded,
    PayloadTooLarge,
    ProviderError,
    RateLimited,
    ServerFailed,
    Stalled,
    TimedOut,
    Unreachable,
)
from hermes_agent.core.messages import (
    CallDelta,
    Delta,
    Message,
    ModelRequest,
    Reply,
    Role,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
)
from hermes_agent.providers.demo.script import (
    Answer,
    Call,
    Heard,
    Pace,
    Piece,
    PrefixCache,
    Say,
    Think,
    call_id,
    chunks,
    count,
    prompt_text,
)
from hermes_agent.testing.faults import (
    BrokenToolJson,
    DuplicateIds,
    Empty,
    ErrorEvent,
    Fault,
    Hang,
    Html,
    KeepAlives,
    Malformed,
    MidwayFault,
    OddReply,
    Reset,
    Status,
    Truncate,
    WrongModel,
    as_answer,
)

Single = Piece | Sequence[Piece] | Answer | OddReply | Fault


@dataclass(frozen=True, slots=True)
class Tries:
    """Scripted answers for attempts at the same question: the nth attempt gets the nth, later ones the last."""

    steps: tuple[Single, ...]


Step = Single | Tries
Script = Sequence[Step] | Callable[[Heard], Step]
OVER = Answer(pieces=(Say("The script is over."),))
STATUS_ERRORS: dict[int, type[ProviderError]] = {
    400: BadRequest,
    401: AuthRefused,
    403: AuthRefused,
    404: ModelNotFound,
    413: PayloadTooLarge,
    429: RateLimited,
    503: Overloaded,
    529: Overloaded,
}


def tries(*steps: Single) -> Tries:
    """For example `tries(Status(429), Reset(), Say("done"))`: two failures, then the answer."""
    return Tries(steps)


class ScriptedModel:
    """Fake model that answers by conversation state, so that a retry after a crash gets the same answer.

    A list is indexed by the number of replies so far (past its end: `otherwise`); a function decides by the whole
    request. Only `Tries` counts attempts. As a `Model` it needs no socket: faults become the errors of a real route,
    and `requests` records what it was asked.
    """

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted/model",
        window: int = 200_000,
        pace: Pace | None = None,
        otherwise: Step = OVER,
        clock: Clock | None = None,
    ) -> None:
        self.requests: list[ModelRequest] = []
        self._script = script
        self._name = name
        self._window = window
        self._pace = pace
        self._otherwise = otherwise
        self._clock = clock or SystemClock()
        self._cache = PrefixCache()
        self._asked: Counter[str] = Counter()

    @property
    def name(self) -> str:
        return self._name

    @property
    def window(self) -> int:
        return self._window

    def answer(self, heard: Heard) -> Answer | Fault:
        """The script's answer to this request."""
        step = self._step(heard)
        if isinstance(step, Tries):
            attempt = self._asked[heard.fingerprint]
            self._asked[heard.fingerprint] += 1
            step = step.steps[min(attempt, len(step.steps) - 1)]
        return self._paced(_whole(step))

    async def ask(self, request: ModelRequest) -> AsyncIterator[Delta | Reply]:
        self.requests.append(request)
        heard = _heard(request, self._name)
        step = self.answer(heard)
        match step:
            case Answer():
                answer, fault = step, None
            case Status(code=code, message=message, headers=headers):
                kind = STATUS_ERRORS.get(code, ServerFailed)
                after = headers.get("retry-after")
                raise kind(message, provider=self._name, status=code, retry_after=float(after) if after else None)
            case Html(code=code):
                raise MalformedReply("the answer is a web page", provider=self._name, status=code)
            case _:
                answer, fault = step.reply, step
        spoken = ""
        async for delta in self._deltas(answer, fault):
            spoken += delta.text if isinstance(delta, TextDelta) else ""
            yield delta
        if fault is not None:
            await self._break(fault, request, spoken)
        if not answer.pieces:
            raise EmptyReply("the answer held neither words nor tool calls", provider=self._name)
        yield self._reply(answer, heard)

    def _step(self, heard: Heard) -> Step:
        if callable(self._script):
            return self._script(heard)
        return self._script[heard.turn] if heard.turn < len(self._script) else self._otherwise

    def _paced(self, step: Answer | Fault) -> Answer | Fault:
        if self._pace is None or not isinstance(step, Answer):
            return step
        return Answer(pieces=step.pieces, pace=self._pace, stop=step.stop, usage=step.usage, model=step.model)

    async def _deltas(self, answer: Answer, fault: MidwayFault | None) -> AsyncIterator[Delta]:
        """The deltas before the fault. A stream begins with an event without text, which `after` counts."""
        await self._wait(answer.pace.first)
        for place, delta in enumerate(_deltas(answer), start=1):
            if fault is not None and place >= fault.after:
                return
            await self._wait(answer.pace.between)
            yield delta

    async def _wait(self, seconds: float) -> None:
        if seconds:
            await self._clock.sleep(seconds)

    async def _break(self, fault: MidwayFault, request: ModelRequest, spoken: str) -> None:
        error: type[ProviderError]
        match fault:
            case Hang():
                left = None if request.deadline is None else request.deadline - self._clock.monotonic()
                await self._clock.sleep(1e9 if left is None else max(0.0, left))
                error = TimedOut
            case KeepAlives(count=None):
                error = Stalled
            case KeepAlives():
                return
            case Reset() | Truncate():
                error = Unreachable
            case Malformed():
                error = MalformedReply
            case ErrorEvent():
                error = Overloaded
        raise error(f"the script broke the answer: {type(fault).__name__}", provider=self._name, partial=spoken)

    def _reply(self, answer: Answer, heard: Heard) -> Reply:
        parts = tuple(_part(piece, heard, index, self._name) for index, piece in enumerate(answer.pieces))
        usage = count(answer, heard.prompt, self._cache.shared(heard.prompt))
        vendor, _, model = self._name.partition("/")
        return Reply(
            message=Message(role=Role.ASSISTANT, parts=parts),
            stop=answer.ending,
            usage=usage,
            provider=vendor,
            model=answer.model or model,
            cost=0.0,
        )


def _whole(step: Single) -> Answer | Fault:
    match step:
        case Answer():
            return step
        case Say() | Think() | Call():
            return Answer(pieces=(step,))
        case BrokenToolJson() | DuplicateIds() | Empty() | WrongModel():
            return as_answer(step)
        case Sequence():
            return Answer(pieces=tuple(step))
        case _:
            return step


def _heard(request: ModelRequest, name: str) -> Heard:
    system, tools = request.prefix.system, request.prefix.tools
    return Heard(
        model=name.partition("/")[2],
        messages=tuple(request.messages),
        system=system,
        tools=tools,
        use_tools=request.use_tools,
        stream=True,
        max_output=request.max_output,
        effort=request.effort,
        prompt=prompt_text(system, *(tool.name for tool in tools), *(repr(message) for message in request.messages)),
    )


def _deltas(answer: Answer) -> list[Delta]:
    deltas: list[Delta] = []
    for piece in answer.pieces:
        match piece:
            case Say(text=text):
                deltas += [TextDelta(text=part) for part in chunks(text, answer.pace.characters)]
            case Think(text=text):
                deltas += [ThinkingDelta(text=part) for part in chunks(text, answer.pace.characters)]
            case Call(name=name):
                deltas.append(CallDelta(name=name))
    return deltas


def _part(piece: Piece, heard: Heard, index: int, maker: str) -> Text | Thinking | ToolCall:
    match piece:
        case Say(text=text):
            return Text(text=text)
        case Think(text=text, redacted=redacted):
            return Thinking(text=text, maker=maker, redacted=redacted)
        case Call():
            arguments = {} if piece.raw else piece.arguments
            return ToolCall(id=call_id(piece, heard, index), name=piece.name, arguments=arguments, broken=piece.raw)
