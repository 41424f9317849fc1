"""Shared by chat completions, responses and runs: turns a request into a run, waits for it, and streams it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Annotated, Any, Protocol

import msgspec

from hermes_agent.api.endpoint import Answer, AppState, Call
from hermes_agent.api.problems import FINAL, bad, in_json, problem_of
from hermes_agent.api.requests import SYSTEM, Said, described, parts_of, says, text_of
from hermes_agent.api.run_view import RunView, Words, shown
from hermes_agent.api.service import Begun, Wish
from hermes_agent.core.errors import HermesError
from hermes_agent.host.inbound.message import Refused
from hermes_agent.host.inbound.sse import streamed
from hermes_agent.host.tasks import spawn

SESSION = "x-hermes-session-id"
NAME = "x-hermes-session-key"
ONCE = "idempotency-key"
LONGEST_HEADER = 200
LAST = "The last message has to be the user's, and to say something; the others are the user's and the assistant's."
TOOLS = "Tools run inside the agent and none can be given from outside: leave `tools` out."
UNSUPPORTED = "unsupported_parameter"


class Format(msgspec.Struct, kw_only=True):
    """The answer's format: only text."""

    type: Annotated[str, described(const="text")] = "text"


class Shape(Protocol):
    """Serializer of a run in one API protocol: whole, or as stream events in the order begin, more, end (or
    break_off)."""

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
