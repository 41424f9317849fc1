"""`/v1/chat/completions`: one message in, the agent's reply out, whatever tools it took to find it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec

from hermes_agent.api.app_state import AppState
from hermes_agent.api.endpoint import Answer, Call, Endpoint, JsonAnswer, Nothing, Streamed
from hermes_agent.api.events import DONE, event, with_pauses
from hermes_agent.api.live_text import shown, words_of
from hermes_agent.api.problems import FINAL, Problem, bad, failed, problem_of
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
from hermes_agent.api.run_view import CHAT, RunView
from hermes_agent.api.service import SELF, Begun, Wish
from hermes_agent.core.errors import HermesError
from hermes_agent.host.tasks import spawn

SESSION = "x-hermes-session-id"
NAME = "x-hermes-session-key"
ONCE = "idempotency-key"
LONGEST_HEADER = 200
LAST = "The last message has to be the user's, and to say something; the others are the user's and the assistant's."
TOOLS = "Tools run inside the agent and none can be given from outside: leave `tools` out."


class StreamOptions(msgspec.Struct, kw_only=True):
    """What a stream tells besides words."""

    include_usage: bool = False


class Format(msgspec.Struct, kw_only=True):
    """How the answer is to be written: only as text."""

    type: Annotated[str, described(const="text")] = "text"


class ChatRequest(msgspec.Struct, kw_only=True):
    """A chat completion's request. What is not named here (`temperature`, `max_tokens` and the like) is passed over:
    the agent's settings decide."""

    messages: Annotated[list[Said], msgspec.Meta(min_length=1, max_length=10_000, description=LAST)]
    model: str = SELF
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int | None, described(enum=[1, None])] = None
    tools: NoItems = None
    functions: NoItems = None
    response_format: Format | None = None


def wish_of(request: ChatRequest, call: Call[Any, Any]) -> Wish:
    """What a request means. Raises `Problem`."""
    if request.tools or request.functions:
        raise bad(TOOLS, "tools", "unsupported_parameter")
    if request.n not in (None, 1):
        raise bad("There is one answer: leave `n` out.", "n", "unsupported_parameter")
    if request.response_format is not None and request.response_format.type != "text":
        raise bad("Answers are text: leave `response_format` out.", "response_format", "unsupported_parameter")
    *before, last = [said for said in request.messages if said.role not in SYSTEM] or [Said(role="system")]
    parts = parts_of(last.content, call.who) if last.role == "user" else ()
    if not says(parts) or any(said.role in ("tool", "function") for said in before):
        raise bad(LAST, "messages")
    instructions = "\n\n".join(text_of(said.content) for said in request.messages if said.role in SYSTEM)
    return placed(
        Wish(
            who=call.who,
            parts=parts,
            words=text_of(last.content),
            history=tuple(before),
            instructions=instructions,
            model=request.model,
        ),
        call,
    )


def placed(wish: Wish, call: Call[Any, Any]) -> Wish:
    """The wish with the session that the headers name."""
    found = {name: call.headers.get(name, "") for name in (SESSION, NAME, ONCE)}
    for name, value in found.items():
        if len(value) > LONGEST_HEADER:
            raise bad(f"The header {name} is too long: at most {LONGEST_HEADER} characters.")
    return replace(wish, session=found[SESSION], name=found[NAME], once=found[ONCE])


async def chat(state: AppState, call: Call[ChatRequest, Nothing]) -> Answer:
    """Say the last message, and answer with the reply."""
    request = call.body
    begun = await state.service.say(wish_of(request, call))
    headers = run_headers(begun)
    story = RunView(ref=begun.ref)
    if request.stream:
        usage = request.stream_options is not None and request.stream_options.include_usage
        chunks = Chunks(story, state.service.name_of(begun.model), int(state.runtime.clock.now()), usage=usage)
        return Streamed(events=with_pauses(chunks.of(state, begun)), headers=headers)
    await finish(state, begun, story, call)
    if story.status == "failed":
        raise failed(story.error, story.text)
    model = story.model or state.service.name_of(begun.model)
    return JsonAnswer(body=whole(story, model, int(state.runtime.clock.now())), headers=headers)


async def finish(state: AppState, begun: Begun, story: RunView, call: Call[Any, Any]) -> None:
    """Wait until the run rests. Raises `Problem` where the client does not wait that long; the run goes on."""
    resting = spawn(_rest(state, begun, story), name=f"rest of {begun.ref.id()}")
    leaving = spawn(call.left(), name=f"client of {begun.ref.id()}")
    try:
        await asyncio.wait((resting, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not resting.done():
            raise Problem(499, "The client left.", code="gone")
        if (failure := resting.result()) is not None:
            problem = problem_of(failure)
            problem.headers = FINAL  # The message is taken in: sent again, it would be worked on twice.
            raise problem from failure
    finally:
        resting.cancel()
        leaving.cancel()
    state.metrics.runs[story.status] += 1


async def _rest(state: AppState, begun: Begun, story: RunView) -> HermesError | None:
    """Return when the run rests, or what is wrong: it is told to whoever waits, and is no failure of the program."""
    try:
        async with aclosing(state.service.listen(begun, story, live=False)) as events:
            async for _ in events:
                pass
    except HermesError as error:
        return error
    return None


def run_headers(begun: Begun) -> dict[str, str]:
    """The headers that say which session and run it was."""
    return {SESSION: begun.ref.session, "x-hermes-run-id": begun.ref.id()}


def whole(story: RunView, model: str, created: int) -> ChatCompletion:
    """The completion of a run that rests."""
    return ChatCompletion(
        id=story.ref.id(CHAT),
        created=created,
        model=model,
        choices=[Choice(message=ChatAnswer(content=shown(story)), finish_reason=reason_of(story))],
        usage=story.chat_usage(),
        hermes=story.facts(),
    )


def reason_of(story: RunView) -> Literal["stop", "length"]:
    """OpenAI's word for how it ended."""
    return "length" if story.status == "limit" else "stop"


class Chunks:
    """The events of one streamed completion."""

    def __init__(self, story: RunView, model: str, created: int, *, usage: bool) -> None:
        self._story, self._model, self._created, self._usage = story, model, created, usage

    async def of(self, state: AppState, begun: Begun) -> AsyncGenerator[bytes, None]:
        """The chunks, and the line that ends them."""
        story = self._story
        yield self._chunk(Delta(role="assistant", content=""))
        try:
            async with aclosing(words_of(state.service, begun, story)) as texts:
                async for text in texts:
                    yield self._chunk(Delta(content=text))
        except HermesError as error:
            yield event(problem_of(error).body)
            return
        state.metrics.runs[story.status] += 1
        if story.status == "failed":
            yield event(failed(story.error, story.text).body)
            return
        yield self._chunk(Delta(), reason_of(story))
        if self._usage:
            yield event(self._empty([], story.chat_usage()))
        yield DONE

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
