"""Server side of the OpenAI chat-completions protocol: requests, streamed replies, token counts, errors.

Field names, order and endings follow https://platform.openai.com/docs/api-reference/chat-streaming; `reasoning_content`
is the field in which DeepSeek, vLLM and others send reasoning (OpenRouter calls it `reasoning`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import StopReason, Usage
from hermes_agent.host.inbound.message import Request
from hermes_agent.providers.demo.openai_request import read_openai
from hermes_agent.providers.demo.script import (
    Answer,
    Call,
    Heard,
    PrefixCache,
    RequestRefused,
    Say,
    Think,
    call_id,
    chunks,
    count,
)

Json = Mapping[str, Any]

FINISH = {
    StopReason.END: "stop",
    StopReason.TOOL_CALLS: "tool_calls",
    StopReason.LENGTH: "length",
    StopReason.REFUSED: "content_filter",
    StopReason.OTHER: "stop",
}
DONE = b"data: [DONE]\n\n"
COMMENT = b": keep-alive\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIStyle:
    """Variants of the protocol between services. `whole_calls` streams each tool call in one chunk, as Mistral does;
    `created` is the Unix time of the replies."""

    reasoning_field: str = "reasoning_content"
    whole_calls: bool = False
    created: int = 1_700_000_000


class OpenAIWire:
    """The protocol of one server; remembers the prompts that it saw, for `cached_tokens`."""

    base = "/v1"
    models_path = "/v1/models"
    stream_type = "text/event-stream; charset=utf-8"
    keep_alive = COMMENT
    malformed = b'data: {"id":"chatcmpl-1","choices":[{"ind\n\n'

    def __init__(self, style: OpenAIStyle | None = None) -> None:
        self._style = style or OpenAIStyle()
        self._cache = PrefixCache()

    def asks(self, request: Request) -> bool:
        """Whether the request is for a completion."""
        return (request.method, request.path) == ("POST", "/v1/chat/completions")

    def key(self, request: Request) -> str:
        """The credential that came with the request, empty without one."""
        return request.headers.get("authorization", "").removeprefix("Bearer ")

    def read(self, request: Request) -> Heard:
        """Parses the request. Raises `RequestRefused` for violations of the protocol."""
        try:
            return read_openai(request.body)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise RequestRefused(f"Invalid request: {type(error).__name__}: {error}") from error

    def usage(self, answer: Answer, heard: Heard) -> Usage:
        """The token usage of an exchange; call it once per exchange, in order."""
        return count(answer, heard.prompt, self._cache.shared(heard.prompt))

    def events(self, answer: Answer, heard: Heard, usage: Usage) -> Iterator[bytes]:
        """The streamed reply, one server-sent event at a time, `[DONE]` last."""
        head = _head(answer, heard, self._style, "chat.completion.chunk")
        unknown: Json = {"usage": None} if heard.stream_usage else {}

        def chunk(delta: Json, finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return sse({**head, "choices": [choice], **unknown})

        yield chunk({"role": "assistant", "content": "", "refusal": None})
        for delta in _deltas(answer, heard, self._style):
            yield chunk(delta)
        yield chunk({}, FINISH[answer.ending])
        if heard.stream_usage:
            yield sse({**head, "choices": [], "usage": _usage(usage)})
        yield DONE

    def document(self, answer: Answer, heard: Heard, usage: Usage) -> bytes:
        """The reply in one piece."""
        text = "".join(piece.text for piece in answer.pieces if isinstance(piece, Say))
        thoughts = "".join(piece.text for piece in answer.pieces if isinstance(piece, Think))
        calls = [
            _call(call_id(piece, heard, index), piece.name, piece.json)
            for index, piece in enumerate(answer.pieces)
            if isinstance(piece, Call)
        ]
        message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None, "annotations": []}
        if thoughts:
            message[self._style.reasoning_field] = thoughts
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": FINISH[answer.ending]}
        head = _head(answer, heard, self._style, "chat.completion")
        return json.dumps({**head, "choices": [choice], "usage": _usage(usage)}).encode()

    def refusal(self, refused: RequestRefused) -> bytes:
        """The body of an error reply."""
        return openai_error(refused)

    def refusal_headers(self, _refused: RequestRefused) -> Mapping[str, str]:
        """The headers of an error reply: none."""
        return {}

    def error_event(self, refused: RequestRefused) -> bytes:
        """An error event in a stream that has started."""
        return sse(json.loads(openai_error(refused)))

    def models(self, names: tuple[str, ...]) -> bytes:
        """The list of models."""
        return openai_models(names, self._style)

    def unknown_model(self, name: str) -> RequestRefused:
        """The error for an unknown model."""
        message = f"The model `{name}` does not exist or you do not have access to it."
        return RequestRefused(message, status=404, code="model_not_found")

    def wrong_key(self, key: str) -> RequestRefused:
        """The error for a wrong key."""
        shown = f"{key[:4]}***" if key else "none"
        return RequestRefused(f"Incorrect API key provided: {shown}.", status=401, code="invalid_api_key")


def openai_error(refused: RequestRefused) -> bytes:
    """The body of an error."""
    error = {"message": str(refused), "type": refused.kind, "param": None, "code": refused.code or None}
    return json.dumps({"error": error}).encode()


def openai_models(names: tuple[str, ...], style: OpenAIStyle) -> bytes:
    """The answer to `GET /v1/models`."""
    entries = [{"id": name, "object": "model", "created": style.created, "owned_by": "script"} for name in names]
    return json.dumps({"object": "list", "data": entries}).encode()


def sse(plain: Json, event: str = "") -> bytes:
    """One server-sent event."""
    line = f"event: {event}\n" if event else ""
    return f"{line}data: {json.dumps(plain, separators=(',', ':'), ensure_ascii=False)}\n\n".encode()


def _deltas(answer: Answer, heard: Heard, style: OpenAIStyle) -> Iterator[Json]:
    size = answer.pace.characters
    calls = 0
    for index, piece in enumerate(answer.pieces):
        match piece:
            case Say(text=text):
                yield from ({"content": part} for part in chunks(text, size))
            case Think(text=text):
                yield from ({style.reasoning_field: part} for part in chunks(text, size))
            case Call() if style.whole_calls:
                yield {"tool_calls": [{"index": calls, **_call(call_id(piece, heard, index), piece.name, piece.json)}]}
                calls += 1
            case Call():
                yield {"tool_calls": [{"index": calls, **_call(call_id(piece, heard, index), piece.name, "")}]}
                for part in chunks(piece.json, size):
                    yield {"tool_calls": [{"index": calls, "function": {"arguments": part}}]}
                calls += 1


def _head(answer: Answer, heard: Heard, style: OpenAIStyle, kind: str) -> Json:
    digest = hashlib.sha256(heard.fingerprint.encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "id": f"chatcmpl-{digest[:24]}",
        "object": kind,
        "created": style.created,
        "model": answer.model or heard.model,
        "service_tier": "default",
        "system_fingerprint": "fp_script",
    }


def _call(identity: str, name: str, arguments: str) -> Json:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def _usage(usage: Usage) -> Json | None:
    if not usage.known:
        return None
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
