"""Endpoints `/v1/responses`, OpenAI's Responses API: create, show, stream, cancel and delete responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from hermes_agent.api.completion import LAST, TOOLS, UNSUPPORTED, Format, complete, system_of, wish_of
from hermes_agent.api.endpoint import Answer, AppState, Call, Endpoint, Nothing
from hermes_agent.api.problems import FAILURES, FINAL, PROVIDER, bad
from hermes_agent.api.requests import InputItem, NoItems, Said, described
from hermes_agent.api.response_schemas import (
    Incomplete,
    OutputMessage,
    OutputWords,
    Response,
    ResponseError,
    ResponseRemoved,
)
from hermes_agent.api.run_view import RESPONSE, RunView, shown
from hermes_agent.api.service import SELF
from hermes_agent.app.operations.sessions import delete_session, has_other_mail, log_of
from hermes_agent.core.events import MessageTaken
from hermes_agent.host.inbound.message import Refused, event

KNOWN = "What was said before is known from `previous_response_id`: give the new message alone."
STATUS = {
    "queued": "queued",
    "running": "in_progress",
    "waiting": "completed",
    "answered": "completed",
    "stopped": "cancelled",
    "limit": "incomplete",
    "failed": "failed",
}


class TextOptions(msgspec.Struct, kw_only=True):
    """Text options of a Responses API request: the output format; only text is supported."""

    format: Format | None = None


class ResponseRequest(msgspec.Struct, kw_only=True):
    """Body of a Responses API request. Fields not listed are ignored: the agent's settings decide."""

    input: Annotated[
        Annotated[str, described(pattern=r"\S")]
        | Annotated[list[InputItem], msgspec.Meta(min_length=1, max_length=10_000)],
        msgspec.Meta(description=LAST),
    ]
    model: str = SELF
    instructions: str | None = None
    previous_response_id: Annotated[str | None, msgspec.Meta(description=KNOWN)] = None
    stream: bool | None = None
    background: bool | None = None
    tools: NoItems = None
    metadata: dict[str, str] | None = None
    text: TextOptions | None = None
    conversation: Annotated[Any, described(type="null")] = None


async def respond(state: AppState, call: Call[ResponseRequest, Nothing]) -> Answer:
    """Start a run and answer with its reply: whole, streamed, or in the background."""
    request = call.body
    if request.tools:
        raise bad(TOOLS, "tools", UNSUPPORTED)
    if request.text is not None and request.text.format is not None and request.text.format.type != "text":
        raise bad("Answers are text: leave `text.format` out.", "text", UNSUPPORTED)
    if request.conversation is not None:
        raise bad("Go on with `previous_response_id`, or name a session in a header.", "conversation", UNSUPPORTED)
    items = [InputItem(content=request.input)] if isinstance(request.input, str) else request.input
    if any(item.type != "message" or item.role in ("tool", "function") for item in items):
        raise bad("An input item has to be a message: tools run inside the agent.", "input", UNSUPPORTED)
    said = [Said(role=item.role, content=item.content) for item in items]
    previous, instructions = request.previous_response_id or "", request.instructions or ""
    more = {"instructions": instructions, "system": system_of(said), "previous": previous, "model": request.model}
    wish = wish_of(call, said, "input", **more)
    if previous and wish.history:
        raise bad(KNOWN, "input")
    created = int(state.runtime.clock.now())

    def shape(story: RunView, model: str) -> Page:
        return Page(story, request, model, created)

    return await complete(state, call, wish, shape, stream=request.stream, waits=not request.background)


async def response(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Show an earlier response from the log."""
    return _kept(state, await _found(state, call))


async def _found(state: AppState, call: Call[Nothing, Any]) -> RunView:
    return await state.service.run_view(call.who, call.path["id"], "response")


def _kept(state: AppState, story: RunView) -> Response:
    """A response created earlier, without the parameters of its request."""
    model = story.model or state.service.name_of("")
    return Page(story, ResponseRequest(input=""), model, int(story.at or state.runtime.clock.now())).whole()


async def remove(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Delete a response with its session, if no other response belongs to it."""
    ref = (await _found(state, call)).ref
    waiting = await has_other_mail(state.runtime, ref.session, ref.row)  # First: what waits may be taken meanwhile.
    taken = [
        each.event.inbox for each in await log_of(state.runtime, ref.session) if isinstance(each.event, MessageTaken)
    ]
    if waiting or not {0, ref.row}.issuperset(taken):
        words = f"Other answers stand in the same session: DELETE /v1/sessions/{ref.session} removes them all."
        raise Refused(409, words, code="not_alone", headers=FINAL)
    await delete_session(state.access(call.who), ref.session)
    return ResponseRemoved(id=call.path["id"])


async def cancel(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Cancel an unfinished response by stopping its run."""
    await state.service.stop(await _found(state, call))
    return _kept(state, await _found(state, call))


class Page:
    """Serializes a run as a Responses API object, or as numbered stream events. Implements `Shape`."""

    def __init__(self, story: RunView, request: ResponseRequest, model: str, created: int) -> None:
        self._story, self._request, self._model, self._created = story, request, model, created
        self._number = 0

    def whole(self) -> Response:
        """The response in its current state."""
        story, request = self._story, self._request
        return Response(
            id=story.ref.id(RESPONSE),
            created_at=self._created,
            model=story.model or self._model,
            status=STATUS[story.status],  # type: ignore[arg-type]  # a table of just those words
            output=[self._message(0, text)] if (text := self._text()) else [],
            usage=story.response_usage() if story.rests else None,
            error=_error(story),
            incomplete_details=Incomplete(reason=story.reason) if story.status == "limit" else None,
            previous_response_id=request.previous_response_id,
            instructions=request.instructions,
            metadata=request.metadata or {},
            background=bool(request.background),
            hermes=story.facts(),
        )

    def _text(self) -> str:
        story = self._story
        return shown(story) if story.rests and story.status != "failed" else ""

    def _message(self, index: int, text: str) -> OutputMessage:
        return OutputMessage(id=f"msg_{self._story.ref.session}_{self._story.ref.row}_{index}", content=[_words(text)])

    def begin(self) -> Iterator[bytes]:
        """The first events."""
        for name in ("response.created", "response.in_progress"):
            yield self._event(name, {"response": self.whole()})

    def break_off(self, error: Refused) -> bytes:
        """An error event that ends the stream."""
        return self._event("error", {"code": error.code, "message": str(error), "param": None})

    def more(self, text: str, *, first: bool) -> bytes:
        """Text events; all turns form one message, separated by blank lines."""
        lines = []
        if first:
            item = self._message(0, "")
            item.status, item.content = "in_progress", []
            lines = [
                self._event("response.output_item.added", {"output_index": 0, "item": item}),
                self._event("response.content_part.added", {**self._spot(), "part": _words("")}),
            ]
        delta = {**self._spot(), "delta": text, "logprobs": []}
        return b"".join([*lines, self._event("response.output_text.delta", delta)])

    def end(self, text: str) -> list[bytes]:
        """The last events."""
        lines = []
        response = self.whole()
        if text:
            item = self._message(0, text)
            response.output = [item]
            lines = [
                self._event("response.output_text.done", {**self._spot(), "text": text, "logprobs": []}),
                self._event("response.content_part.done", {**self._spot(), "part": item.content[0]}),
                self._event("response.output_item.done", {"output_index": 0, "item": item}),
            ]
        name = response.status if response.status in ("failed", "incomplete", "cancelled") else "completed"
        return [*lines, self._event(f"response.{name}", {"response": response})]

    def _spot(self) -> dict[str, object]:
        return {"item_id": self._message(0, "").id, "output_index": 0, "content_index": 0}

    def _event(self, name: str, more: dict[str, object]) -> bytes:
        number, self._number = self._number, self._number + 1
        return event({"type": name, "sequence_number": number, **more}, name=name)


def _words(text: str) -> OutputWords:
    return OutputWords(text=text)


def _error(story: RunView) -> ResponseError | None:
    if story.status != "failed":
        return None
    return ResponseError(code=FAILURES.get(story.error, PROVIDER)[1], message=story.text)


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/v1/responses",
        act=respond,
        summary="Say something, and get the agent's reply, whole or as events, or later.",
        body=ResponseRequest,
        answer=Response,
        streams=True,
    ),
    Endpoint(
        method="GET",
        path="/v1/responses/{id}",
        act=response,
        summary="An answer, as the log has it.",
        answer=Response,
    ),
    Endpoint(
        method="DELETE",
        path="/v1/responses/{id}",
        act=remove,
        summary="Remove an answer with its session, where no other one stands there.",
        answer=ResponseRemoved,
    ),
    Endpoint(
        method="POST",
        path="/v1/responses/{id}/cancel",
        act=cancel,
        summary="Stop the run of an answer that is not whole yet.",
        answer=Response,
    ),
)
