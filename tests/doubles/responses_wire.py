"""The OpenAI Responses protocol as a server speaks it: events, documents, refusals, and the responses that it keeps.

Event names, order and fields follow https://platform.openai.com/docs/api-reference/responses-streaming.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from hermes_agent.core.messages import StopReason, Usage
from hermes_agent.host.inbound.message import Request
from hermes_agent.providers.demo.openai_wire import COMMENT, OpenAIStyle, OpenAIWire, openai_error, openai_models, sse
from hermes_agent.providers.demo.script import (
    Answer,
    Call,
    Heard,
    Piece,
    PrefixCache,
    RequestRefused,
    Say,
    Think,
    call_id,
    chunks,
    count,
)
from tests.doubles.responses_request import ResponsesStyle, given_items, parsed, read_responses, seal

Json = Mapping[str, Any]

REASONS = {StopReason.LENGTH: "max_output_tokens", StopReason.REFUSED: "content_filter", StopReason.OTHER: "steered"}
# The field of an item that grows, and the events that carry its pieces.
TEXT = "response.output_text"
ARGUMENTS = "response.function_call_arguments"
SUMMARY = "response.reasoning_summary_text"


class ResponsesWire(OpenAIWire):
    """One server's side of the protocol. What is asked with `store` is kept, and can be gone on from.

    `forget` loses every kept response.
    """

    keep_alive = COMMENT
    malformed = b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","output_ind\n\n'

    def __init__(self, style: ResponsesStyle | None = None) -> None:
        super().__init__()
        self._own_style = style or ResponsesStyle()
        self._prompts = PrefixCache()
        self._items: dict[str, list[Json]] = {}
        self._asked: dict[str, list[Json]] = {}

    def asks(self, request: Request) -> bool:
        """Whether this is a question to a model."""
        return (request.method, request.path) == ("POST", "/v1/responses")

    def forget(self) -> None:
        """Lose every kept response."""
        self._items.clear()

    def read(self, request: Request) -> Heard:
        """The question, with the conversation that it goes on from. Raises `RequestRefused` for what the protocol does
        not allow."""
        try:
            plain = parsed(request.body, self._own_style)
            items = [*self._before(plain), *given_items(plain)]
            heard = read_responses(plain, items)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise RequestRefused(f"Invalid request: {type(error).__name__}: {error}") from error
        if plain.get("store", True):
            self._asked[_name("resp", heard)] = items
        return heard

    def usage(self, answer: Answer, heard: Heard) -> Usage:
        """What the exchange counts as; to be asked once per exchange, in order."""
        return count(answer, heard.prompt, self._prompts.shared(heard.prompt))

    def events(self, answer: Answer, heard: Heard, usage: Usage) -> Iterator[bytes]:
        """The streamed reply, one event at a time."""
        number = itertools.count()
        for event in self._events(answer, heard, usage):
            yield sse({**event, "sequence_number": next(number)}, event["type"])

    def document(self, answer: Answer, heard: Heard, usage: Usage) -> bytes:
        """The reply in one piece."""
        return json.dumps(self._whole(answer, heard, usage)).encode()

    def refusal(self, refused: RequestRefused) -> bytes:
        """The body of an error reply; behind the sign-in it is a plain sentence."""
        if self._own_style.signed_in and refused.status < 429:
            return json.dumps({"detail": str(refused)}).encode()
        return openai_error(refused)

    def error_event(self, refused: RequestRefused) -> bytes:
        """An error that arrives inside a stream that began well."""
        own = {"code": refused.code or refused.kind, "message": str(refused), "param": None, "sequence_number": 9}
        return sse({"type": "error", **own}, "error")

    def models(self, names: tuple[str, ...]) -> bytes:
        """The list of models."""
        return openai_models(names, OpenAIStyle(created=self._own_style.created))

    def _before(self, plain: Json) -> list[Json]:
        name = plain.get("previous_response_id")
        if name is None:
            return []
        if name not in self._items:
            raise RequestRefused(f"Previous response with id '{name}' not found.", code="previous_response_not_found")
        return self._items[name]

    def _events(self, answer: Answer, heard: Heard, usage: Usage) -> Iterator[Json]:
        begun = {**self._head(answer, heard), "status": "in_progress", "output": [], "usage": None}
        yield {"type": "response.created", "response": begun}
        yield {"type": "response.in_progress", "response": begun}
        for index, piece in enumerate(answer.pieces):
            item = _item(piece, heard, index)
            place = {"output_index": index, "item_id": item["id"]}
            yield {"type": "response.output_item.added", "output_index": index, "item": _empty(item)}
            for event in _pieces(piece, answer.pace.characters):
                yield {**event, **place}
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        whole = self._whole(answer, heard, usage)
        yield {"type": f"response.{whole['status']}", "response": whole}

    def _whole(self, answer: Answer, heard: Heard, usage: Usage) -> Json:
        output = [_item(piece, heard, index) for index, piece in enumerate(answer.pieces)]
        reason = REASONS.get(answer.ending)
        head = self._head(answer, heard)
        asked = self._asked.pop(head["id"], None)
        if asked is not None:
            self._items[head["id"]] = [*asked, *output]
        return {
            **head,
            "status": "incomplete" if reason else "completed",
            "incomplete_details": {"reason": reason} if reason else None,
            "output": output,
            "usage": _usage(usage),
        }

    def _head(self, answer: Answer, heard: Heard) -> Json:
        return {
            "id": _name("resp", heard),
            "object": "response",
            "created_at": self._own_style.created,
            "model": answer.model or heard.model,
            "error": None,
            "incomplete_details": None,
            "instructions": heard.system or None,
            "metadata": {},
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "top_p": 1.0,
            "tool_choice": "auto" if heard.use_tools else "none",
            "tools": [],
        }


def _name(stem: str, heard: Heard) -> str:
    digest = hashlib.sha256(heard.fingerprint.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{stem}_{digest[:24]}"


def _item(piece: Piece, heard: Heard, index: int) -> dict[str, Any]:
    """One item of the output, whole."""
    match piece:
        case Say(text=text):
            content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
            return {
                "type": "message",
                "id": _name(f"msg_{index}", heard),
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        case Think(text=text, redacted=redacted):
            summary = [] if redacted else [{"type": "summary_text", "text": text}]
            own = {"type": "reasoning", "id": _name(f"rs_{index}", heard), "summary": summary}
            return {**own, "encrypted_content": seal(text)}
        case Call():
            return {
                "type": "function_call",
                "id": _name(f"fc_{index}", heard),
                "call_id": call_id(piece, heard, index),
                "name": piece.name,
                "arguments": piece.json,
                "status": "completed",
            }


def _empty(item: Json) -> Json:
    """An item as it is announced, before any of it has come."""
    match item["type"]:
        case "message":
            return {**item, "status": "in_progress", "content": []}
        case "reasoning":
            return {**item, "summary": [], "encrypted_content": ""}
        case _:
            return {**item, "status": "in_progress", "arguments": ""}


def _pieces(piece: Piece, size: int) -> Iterator[Json]:
    match piece:
        case Say(text=text):
            part = {"type": "output_text", "annotations": [], "logprobs": []}
            at = {"content_index": 0}
            yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
            yield from ({"type": f"{TEXT}.delta", **at, "delta": cut, "logprobs": []} for cut in chunks(text, size))
            yield {"type": f"{TEXT}.done", **at, "text": text, "logprobs": []}
            yield {"type": "response.content_part.done", **at, "part": {**part, "text": text}}
        case Think(redacted=True):
            return
        case Think(text=text):
            at = {"summary_index": 0}
            yield {"type": "response.reasoning_summary_part.added", **at, "part": {"type": "summary_text", "text": ""}}
            yield from ({"type": f"{SUMMARY}.delta", **at, "delta": cut} for cut in chunks(text, size))
            yield {"type": f"{SUMMARY}.done", **at, "text": text}
            yield {"type": "response.reasoning_summary_part.done", **at, "part": {"type": "summary_text", "text": text}}
        case Call():
            yield from ({"type": f"{ARGUMENTS}.delta", "delta": cut} for cut in chunks(piece.json, size))
            yield {"type": f"{ARGUMENTS}.done", "name": piece.name, "arguments": piece.json}


def _usage(usage: Usage) -> Json | None:
    if not usage.known:
        return None
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
