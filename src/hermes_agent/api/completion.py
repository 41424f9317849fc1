"""Endpoint `/v1/chat/completions`; and what the Responses API and `/v1/runs` share with it: translating a request,
waiting for its run, and streaming the run's text as events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Annotated, Any, Literal, Protocol

import msgspec

from hermes_agent.api.endpoint import Answer, AppState, Call, Endpoint, Nothing
from hermes_agent.api.problems import FINAL, bad, body_of, failed, in_json, problem_of
from hermes_agent.api.requests import SYSTEM, NoItems, Said, described, parts_of, says, text_of
from hermes_agent.api.response_schemas import (
    ChatAnswer,
    ChatChunk,
    ChatCompletion,
    ChatUsage,
    Choice,
    ChunkChoice,
    Delta,
)
from hermes_agent.api.run_view import CHAT, RunView, shown
from hermes_agent.api.service import SELF, Begun, Wish
from hermes_agent.core.errors import HermesError
from hermes_agent.core.streamed import Words
from hermes_agent.host.inbound.message import DONE, Refused, event, streamed
from hermes_agent.host.tasks import spawn

SESSION = "x-hermes-session-id"
NAME = "x-hermes-session-key"
ONCE = "idempotency-key"
LONGEST_HEADER = 200
LAST = "The last message has to be the user's, and to say something; the others are the user's and the assistant's."
TOOLS = "Tools run inside the agent and none can be given from outside: leave `tools` out."
UNSUPPORTED = "unsupported_parameter"


class Format(msgspec.Struct, kw_only=True):
    """Output format that a client asks for in a chat completion or a Responses API response; only text is supported."""

    type: Annotated[str, described(const="text")] = "text"


class Shape(Protocol):
    """Serializer of a run for one OpenAI endpoint (`Completion`, `responses.Page`): `whole` gives one object; a stream
    is `begin`, `more` for each piece of text, then `end`, or `break_off` after an error."""

    def whole(self) -> msgspec.Struct: ...

    def begin(self) -> Iterable[bytes]: ...

    def more(self, text: str, *, first: bool) -> bytes: ...

    def break_off(self, error: Refused) -> bytes: ...

    def end(self, text: str) -> Iterable[bytes]: ...


def wish_of(call: Call[Any, Any], said: Sequence[Said], param: str, **more: Any) -> Wish:  # noqa: ANN401  fields of a wish
    """Translate a request: its last message, the earlier ones as history, and the session named in its headers.
    Raises `Refused`."""
    found = {name: call.headers.get(name, "") for name in (SESSION, NAME, ONCE)}
    for name, value in found.items():
        if len(value) > LONGEST_HEADER:
            raise bad(f"The header {name} is too long: at most {LONGEST_HEADER} characters.")
    *before, last = [each for each in said if each.role not in SYSTEM] or [Said(role="system")]
    parts = parts_of(last.content, call.who) if last.role == "user" else ()
    if not says(parts) or any(each.role in ("tool", "function") for each in before):
        raise bad(LAST, param)
    wish: dict[str, Any] = {"session": found[SESSION], "name": found[NAME], "once": found[ONCE], **more}
    return Wish(who=call.who, parts=parts, words=text_of(last.content), history=tuple(before), **wish)


def system_of(said: Iterable[Said]) -> str:
    """The text of the system and developer messages."""
    return "\n\n".join(filter(None, (text_of(each.content) for each in said if each.role in SYSTEM)))


def run_headers(begun: Begun) -> dict[str, str]:
    """Response headers with the session and run ids."""
    return {SESSION: begun.ref.session, "x-hermes-run-id": begun.ref.id()}


async def complete(
    state: AppState,
    call: Call[Any, Any],
    wish: Wish,
    shape_of: Callable[[RunView, str], Shape],
    *,
    stream: bool | None,
    waits: bool = True,
) -> Answer:
    """Submit the message and answer in the protocol of `shape_of`: as a stream, or whole, at once or (`waits`) when
    the run ends or waits for a person."""
    begun = await state.service.say(wish)
    story = RunView(ref=begun.ref)
    if waits and not stream:
        await finish(state, begun, story, call)
    shape = shape_of(story, story.model or state.service.name_of(begun.model))
    if stream:
        return streamed(events_of(state, begun, story, shape), run_headers(begun))
    return in_json(shape.whole(), headers=run_headers(begun))


async def events_of(state: AppState, begun: Begun, story: RunView, shape: Shape) -> AsyncGenerator[bytes, None]:
    """Stream a run's text as protocol events, turn by turn, then the rest of its reply."""
    for line in shape.begin():
        yield line
    sent = ""
    try:
        async with aclosing(_words(state, begun, story)) as texts:
            async for text in texts:
                yield shape.more(text, first=not sent)
                sent += text
    except HermesError as error:
        yield shape.break_off(problem_of(error))
        return
    state.metrics.runs[story.status] += 1
    for line in shape.end(sent):
        yield line


async def _words(state: AppState, begun: Begun, story: RunView) -> AsyncGenerator[str, None]:
    words = Words()
    async with aclosing(state.service.listen(begun, story)) as events:
        async for seen in events:
            if text := words.take(seen.event):
                yield text
    if story.status != "failed" and (text := words.rest(shown(story))):
        yield text


async def finish(state: AppState, begun: Begun, story: RunView, call: Call[Any, Any]) -> None:
    """Wait until the run ends or waits for a person. Raises `Refused` if the client disconnects first; the run
    continues."""
    resting = spawn(_rest(state, begun, story), name=f"rest of {begun.ref.id()}")
    leaving = spawn(call.left.wait(), name=f"client of {begun.ref.id()}")
    try:
        await asyncio.wait((resting, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not resting.done():
            raise Refused(499, "The client left.", code="gone")
        if (failure := resting.result()) is not None:
            problem = problem_of(failure)
            problem.headers = FINAL  # The message is taken in: sent again, it would be worked on twice.
            raise problem from failure
    finally:
        resting.cancel()
        leaving.cancel()
    state.metrics.runs[story.status] += 1


async def _rest(state: AppState, begun: Begun, story: RunView) -> HermesError | None:
    """Wait until the run ends or waits for a person. Returns an error instead of raising it, as it is reported to
    the client."""
    try:
        async with aclosing(state.service.listen(begun, story, live=False)) as events:
            async for _ in events:
                pass
    except HermesError as error:
        return error
    return None


class StreamOptions(msgspec.Struct, kw_only=True):
    """What a chat completion stream sends besides text: `include_usage` adds a chunk with the token usage."""

    include_usage: bool = False


class ChatRequest(msgspec.Struct, kw_only=True):
    """Body of a chat completion request. Fields not listed (`temperature`, `max_tokens` and the like) are ignored: the
    agent's settings decide."""

    messages: Annotated[list[Said], msgspec.Meta(min_length=1, max_length=10_000, description=LAST)]
    model: str = SELF
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int | None, described(enum=[1, None])] = None
    tools: NoItems = None
    functions: NoItems = None
    response_format: Format | None = None


async def chat(state: AppState, call: Call[ChatRequest, Nothing]) -> Answer:
    """Start a run with the last message and answer with its reply, whole or streamed."""
    request = call.body
    if request.tools or request.functions:
        raise bad(TOOLS, "tools", UNSUPPORTED)
    if request.n not in (None, 1):
        raise bad("There is one answer: leave `n` out.", "n", UNSUPPORTED)
    if request.response_format is not None and request.response_format.type != "text":
        raise bad("Answers are text: leave `response_format` out.", "response_format", UNSUPPORTED)
    wish = wish_of(call, request.messages, "messages", instructions=system_of(request.messages), model=request.model)
    usage = request.stream_options is not None and request.stream_options.include_usage
    created = int(state.runtime.clock.now())

    def shape(story: RunView, model: str) -> Completion:
        return Completion(story, model, created, usage=usage)

    return await complete(state, call, wish, shape, stream=request.stream)


class Completion:
    """Serializes a run as a chat completion: one object, or the chunks of a stream. Implements `Shape`."""

    def __init__(self, story: RunView, model: str, created: int, *, usage: bool) -> None:
        self._story, self._model, self._created, self._usage = story, model, created, usage

    def whole(self) -> ChatCompletion:
        """The completion of a finished or waiting run. Raises `Refused` for a failed one."""
        story = self._story
        if story.status == "failed":
            raise failed(story.error, story.text)
        return ChatCompletion(
            id=story.ref.id(CHAT),
            created=self._created,
            model=story.model or self._model,
            choices=[Choice(message=ChatAnswer(content=shown(story)), finish_reason=self._reason)],
            usage=story.chat_usage(),
            hermes=story.facts(),
        )

    def begin(self) -> Iterator[bytes]:
        """The first chunk, with the role."""
        yield self._chunk(Delta(role="assistant", content=""))

    def more(self, text: str, *, first: bool) -> bytes:  # noqa: ARG002  a shape's own
        """A chunk of text."""
        return self._chunk(Delta(content=text))

    def break_off(self, error: Refused) -> bytes:
        """An error event that ends the stream."""
        return event(body_of(error))

    def end(self, text: str) -> Iterator[bytes]:  # noqa: ARG002  a shape's own
        """The last chunk (finish reason, usage) and `[DONE]`."""
        if self._story.status == "failed":
            yield self.break_off(failed(self._story.error, self._story.text))
            return
        yield self._chunk(Delta(), self._reason)
        if self._usage:
            yield event(self._empty([], self._story.chat_usage()))
        yield DONE

    @property
    def _reason(self) -> Literal["stop", "length"]:
        return "length" if self._story.status == "limit" else "stop"

    def _chunk(self, delta: Delta, reason: Literal["stop", "length"] | None = None) -> bytes:
        return event(self._empty([ChunkChoice(delta=delta, finish_reason=reason)]))

    def _empty(self, choices: list[ChunkChoice], usage: ChatUsage | None = None) -> ChatChunk:
        return ChatChunk(
            id=self._story.ref.id(CHAT),
            created=self._created,
            model=self._story.model or self._model,
            choices=choices,
            usage=usage,
        )


CHAT_COMPLETIONS = Endpoint(
    method="POST",
    path="/v1/chat/completions",
    act=chat,
    summary="Say the last message of a conversation, and get the agent's reply, whole or as events.",
    body=ChatRequest,
    answer=ChatCompletion,
    streams=True,
)
