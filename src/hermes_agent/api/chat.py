"""Endpoint `/v1/chat/completions`: OpenAI chat completions, answered by a run of the agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from hermes_agent.api.completion import LAST, TOOLS, UNSUPPORTED, Format, complete, system_of, wish_of
from hermes_agent.api.endpoint import Answer, AppState, Call, Endpoint, Nothing
from hermes_agent.api.problems import bad, body_of, failed
from hermes_agent.api.requests import NoItems, Said, described
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
from hermes_agent.api.service import SELF
from hermes_agent.host.inbound.message import Refused
from hermes_agent.host.inbound.sse import DONE, event


class StreamOptions(msgspec.Struct, kw_only=True):
    """Options of a streamed answer."""

    include_usage: bool = False


class ChatRequest(msgspec.Struct, kw_only=True):
    """Body of a chat completion request. Fields not listed (`temperature`, `max_tokens` and the like) are ignored:
    the agent's settings decide."""

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
