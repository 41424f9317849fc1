"""The Anthropic Messages protocol as a server speaks it: events, documents, refusals, the prompt cache by breakpoints.

Event names, order and fields follow https://docs.anthropic.com/en/api/messages-streaming.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from hermes_agent.core.messages import StopReason, Usage
from hermes_agent.host.inbound.message import Request
from hermes_agent.providers.demo.openai_wire import sse
from hermes_agent.providers.demo.script import (
    Answer,
    Call,
    Heard,
    Piece,
    RequestRefused,
    Say,
    Think,
    call_id,
    chunks,
    count,
)
from tests.doubles.anthropic_request import prompt_blocks, read_anthropic, seal, sign
from tests.doubles.breakpoints import BreakpointCache

Json = Mapping[str, Any]

STOPS = {
    StopReason.END: "end_turn",
    StopReason.TOOL_CALLS: "tool_use",
    StopReason.LENGTH: "max_tokens",
    StopReason.REFUSED: "refusal",
    StopReason.OTHER: "pause_turn",
}
ERROR_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
REQUEST_ID = "req_011CSHoEeqs5C35K2UUqR7Fy"


class AnthropicWire:
    """One server's side of the protocol."""

    base = ""
    models_path = "/v1/models"
    stream_type = "text/event-stream; charset=utf-8"
    keep_alive = sse({"type": "ping"}, "ping")
    malformed = b'event: content_block_delta\ndata: {"type":"content_block_delta","ind\n\n'

    def __init__(self) -> None:
        self._cache = BreakpointCache()
        self._cached: dict[str, tuple[int, int]] = {}

    def asks(self, request: Request) -> bool:
        """Whether this is a question to a model."""
        return (request.method, request.path) == ("POST", "/v1/messages")

    def key(self, request: Request) -> str:
        """The credential that came with the request, empty without one."""
        return request.headers.get("x-api-key", "") or request.headers.get("authorization", "").removeprefix("Bearer ")

    def read(self, request: Request) -> Heard:
        """The question. Raises `RequestRefused` for what the protocol does not allow."""
        if "anthropic-version" not in request.headers:
            raise RequestRefused("anthropic-version: header is required")
        try:
            heard = read_anthropic(request.body)
            self._cached[heard.prompt] = self._cache.account(heard.model, _marked_blocks(request.body))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise RequestRefused(f"{type(error).__name__}: {error}") from error
        return heard

    def usage(self, answer: Answer, heard: Heard) -> Usage:
        """What the exchange counts as."""
        if answer.usage is not None:
            return answer.usage
        read, written = self._cached.pop(heard.prompt, (0, 0))
        counted = count(answer, heard.prompt, read)
        whole = max(counted.input, read + written)
        return Usage(input=whole, output=counted.output, cached=read, cache_write=written, reasoning=counted.reasoning)

    def events(self, answer: Answer, heard: Heard, usage: Usage) -> Iterator[bytes]:
        """The streamed reply, one event at a time."""
        message = {**_head(answer, heard), "content": [], "stop_reason": None, "stop_sequence": None}
        yield _event("message_start", message={**message, "usage": {**_usage(usage), "output_tokens": 1}})
        yield self.keep_alive
        for index, piece in enumerate(answer.pieces):
            yield _event("content_block_start", index=index, content_block=_begun(piece, heard, index))
            for delta in _deltas(piece, answer.pace.characters):
                yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
        ending = {"stop_reason": STOPS[answer.ending], "stop_sequence": None}
        yield _event("message_delta", delta=ending, usage=_usage(usage))
        yield _event("message_stop")

    def document(self, answer: Answer, heard: Heard, usage: Usage) -> bytes:
        """The reply in one piece."""
        content = [_block(piece, heard, index) for index, piece in enumerate(answer.pieces)]
        ending = {"stop_reason": STOPS[answer.ending], "stop_sequence": None}
        return json.dumps({**_head(answer, heard), "content": content, **ending, "usage": _usage(usage)}).encode()

    def refusal(self, refused: RequestRefused) -> bytes:
        """The body of an error reply."""
        return json.dumps(_error(refused)).encode()

    def refusal_headers(self, _refused: RequestRefused) -> Mapping[str, str]:
        """What the headers of an error reply say: nothing."""
        return {}

    def error_event(self, refused: RequestRefused) -> bytes:
        """An error that arrives inside a stream that began well."""
        return sse(_error(refused), "error")

    def models(self, names: tuple[str, ...]) -> bytes:
        """The list of models."""
        data = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2025-01-01T00:00:00Z"} for name in names
        ]
        first, last = (names[0], names[-1]) if names else (None, None)
        return json.dumps({"data": data, "has_more": False, "first_id": first, "last_id": last}).encode()

    def unknown_model(self, name: str) -> RequestRefused:
        """The refusal of a model that is not there."""
        return RequestRefused(f"model: {name}", status=404)

    def wrong_key(self, key: str) -> RequestRefused:
        """The refusal of a credential."""
        return RequestRefused("invalid x-api-key" if key else "x-api-key header is required", status=401)


def _marked_blocks(body: bytes) -> Iterator[tuple[Json, bool]]:
    """What the model reads, block by block, each with whether the request marks it for the cache."""
    for block in prompt_blocks(json.loads(body)):
        yield {name: value for name, value in block.items() if name != "cache_control"}, "cache_control" in block


def _event(kind: str, **fields: object) -> bytes:
    return sse({"type": kind, **fields}, kind)


def _head(answer: Answer, heard: Heard) -> Json:
    digest = hashlib.sha256(heard.fingerprint.encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "id": f"msg_{digest[:24]}",
        "type": "message",
        "role": "assistant",
        "model": answer.model or heard.model,
    }


def _begun(piece: Piece, heard: Heard, index: int) -> Json:
    """The block as it opens: empty, except for what cannot be streamed."""
    match piece:
        case Say():
            return {"type": "text", "text": ""}
        case Think(redacted=True):
            return _block(piece, heard, index)
        case Think():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case Call(name=name):
            return {"type": "tool_use", "id": call_id(piece, heard, index, "toolu"), "name": name, "input": {}}


def _deltas(piece: Piece, size: int) -> Iterator[Json]:
    match piece:
        case Say(text=text):
            yield from ({"type": "text_delta", "text": part} for part in chunks(text, size))
        case Think(redacted=True):
            return
        case Think(text=text):
            yield from ({"type": "thinking_delta", "thinking": part} for part in chunks(text, size))
            yield {"type": "signature_delta", "signature": sign(text)}
        case Call():
            yield {"type": "input_json_delta", "partial_json": ""}
            yield from ({"type": "input_json_delta", "partial_json": part} for part in chunks(piece.json, size))


def _block(piece: Piece, heard: Heard, index: int) -> Json:
    match piece:
        case Say(text=text):
            return {"type": "text", "text": text}
        case Think(text=text, redacted=True):
            return {"type": "redacted_thinking", "data": seal(text)}
        case Think(text=text):
            return {"type": "thinking", "thinking": text, "signature": sign(text)}
        case Call():
            arguments = json.loads(piece.json)
            return {
                "type": "tool_use",
                "id": call_id(piece, heard, index, "toolu"),
                "name": piece.name,
                "input": arguments,
            }


def _usage(usage: Usage) -> Json:
    """The service counts what it read from or wrote to the cache beside `input_tokens`, not in it."""
    return {
        "input_tokens": usage.input - usage.cached - usage.cache_write,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": usage.cache_write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
        "service_tier": "standard",
    }


def _error(refused: RequestRefused) -> Json:
    own = "" if refused.kind == "invalid_request_error" else refused.kind
    kind = own or ERROR_KINDS.get(refused.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": str(refused)}, "request_id": REQUEST_ID}
