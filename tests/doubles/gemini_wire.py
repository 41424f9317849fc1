"""The Gemini protocol as a server speaks it: generateContent, streamed as server-sent events or whole, and refusals.

Field names, finish reasons and error bodies follow https://ai.google.dev/api/generate-content and google.rpc.Status.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import StopReason, Usage
from hermes_agent.host.inbound.message import Request
from hermes_agent.providers.demo.openai_wire import COMMENT, sse
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
from tests.doubles.gemini_request import read_gemini, sign, signed_call

Json = Mapping[str, Any]

QUESTION = re.compile(r".*/models/(?P<model>[^/]+):(?P<method>generateContent|streamGenerateContent)")
STOPS = {
    StopReason.END: "STOP",
    StopReason.TOOL_CALLS: "STOP",
    StopReason.LENGTH: "MAX_TOKENS",
    StopReason.REFUSED: "SAFETY",
    StopReason.OTHER: "OTHER",
}
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
# The service has no status of its own for "busy" but 503.
BUSY = 529
# The service caches from some thousand tokens on, without being asked to; a test is shorter.
CACHE_STEP = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiStyle:
    """Where the service's faces differ: `base` is the path before `/models`; without `call_ids` calls have no id."""

    base: str = "/v1beta"
    call_ids: bool = True


class GeminiWire:
    """One server's side of the protocol."""

    stream_type = "text/event-stream"
    keep_alive = COMMENT
    malformed = b'data: {"candidates":[{"content":{"par\n\n'

    def __init__(self, style: GeminiStyle | None = None) -> None:
        self._style = style or GeminiStyle()
        self.base = self._style.base
        self.models_path = f"{self.base}/models"
        self._cache = PrefixCache(CACHE_STEP)

    def asks(self, request: Request) -> bool:
        """Whether this is a question to a model."""
        return request.method == "POST" and QUESTION.fullmatch(request.path) is not None

    def key(self, request: Request) -> str:
        """The credential that came with the request, empty without one."""
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        return request.headers.get("x-goog-api-key", "") or bearer

    def read(self, request: Request) -> Heard:
        """The question. Raises `RequestRefused` for what the protocol does not allow."""
        found = QUESTION.fullmatch(request.path)
        assert found is not None  # `asks` said so
        stream = found["method"] == "streamGenerateContent"
        if stream and "alt=sse" not in request.query:
            raise RequestRefused("This server streams server-sent events only: ask with alt=sse.")
        try:
            return read_gemini(request.body, unquote(found["model"]), stream=stream)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise RequestRefused(f"Invalid JSON payload received. {type(error).__name__}: {error}") from error

    def usage(self, answer: Answer, heard: Heard) -> Usage:
        """What the exchange counts as; to be asked once per exchange, in order."""
        return count(answer, heard.prompt, self._cache.shared(heard.prompt))

    def events(self, answer: Answer, heard: Heard, usage: Usage) -> Iterator[bytes]:
        """The streamed reply, one chunk at a time; the last one has the finish reason and the whole usage."""
        yield self._chunk(answer, heard, [{"text": ""}], _usage(Usage(input=usage.input, cached=usage.cached)))
        for index, piece in enumerate(answer.pieces):
            for part in self._parts(piece, answer, heard, index):
                yield self._chunk(answer, heard, [part], _usage(Usage(input=usage.input, cached=usage.cached)))
        yield sse({**_head(answer, heard), "candidates": [_ending(answer)], "usageMetadata": _usage(usage)})

    def document(self, answer: Answer, heard: Heard, usage: Usage) -> bytes:
        """The reply in one piece."""
        whole = Answer(pieces=answer.pieces, stop=answer.stop)
        parts: list[Json] = []
        for index, piece in enumerate(answer.pieces):
            parts += self._parts(piece, whole, heard, index, whole=True)
        ending = _ending(answer)
        parts += ending.get("content", {}).get("parts", ())
        candidate = {**ending, "content": {"role": "model", "parts": parts}}
        return json.dumps({**_head(answer, heard), "candidates": [candidate], "usageMetadata": _usage(usage)}).encode()

    def refusal(self, refused: RequestRefused) -> bytes:
        """The body of an error reply."""
        return json.dumps(_error(refused)).encode()

    def refusal_headers(self, _refused: RequestRefused) -> Mapping[str, str]:
        """What the headers of an error reply say: nothing."""
        return {}

    def error_event(self, refused: RequestRefused) -> bytes:
        """An error that arrives inside a stream that began well."""
        return sse(_error(refused))

    def models(self, names: tuple[str, ...]) -> bytes:
        """The list of models."""
        methods = ["generateContent", "countTokens"]
        entries = [
            {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods} for name in names
        ]
        return json.dumps({"models": entries}).encode()

    def unknown_model(self, name: str) -> RequestRefused:
        """The refusal of a model that is not there."""
        return RequestRefused(
            f"models/{name} is not found for API version v1beta, or is not supported for generateContent.", status=404
        )

    def wrong_key(self, key: str) -> RequestRefused:
        """The refusal of a credential: a wrong key is an invalid argument to this service."""
        if key:
            return RequestRefused("API key not valid. Please pass a valid API key.", code="API_KEY_INVALID")
        words = "Method doesn't allow unregistered callers (callers without established identity)."
        return RequestRefused(words, status=403)

    def _chunk(self, answer: Answer, heard: Heard, parts: list[Json], usage: Json) -> bytes:
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
        return sse({**_head(answer, heard), "candidates": [candidate], "usageMetadata": usage})

    def _parts(self, piece: Piece, answer: Answer, heard: Heard, index: int, *, whole: bool = False) -> Iterator[Json]:
        size = 2**31 if whole else answer.pace.characters
        match piece:
            case Say(text=text):
                yield from ({"text": part} for part in chunks(text, size))
            case Think(text=text):
                yield from ({"text": part, "thought": True} for part in chunks(text, size))
            case Call():
                arguments = _arguments(piece)
                if arguments is None:
                    return
                call = {"name": piece.name, "args": arguments}
                if self._style.call_ids:
                    call["id"] = call_id(piece, heard, index, "fc")
                first = not any(isinstance(earlier, Call) for earlier in answer.pieces[:index])
                signature = {"thoughtSignature": signed_call(piece.name, arguments)} if first else {}
                yield {"functionCall": call, **signature}


def _arguments(call: Call) -> dict[str, Any] | None:
    """The arguments as the object that they are here; None where they are none."""
    try:
        arguments = json.loads(call.json)
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None


def _ending(answer: Answer) -> dict[str, Any]:
    """The last candidate: why the model stopped, and the signature under words that were thought about."""
    broken = [piece for piece in answer.pieces if isinstance(piece, Call) and _arguments(piece) is None]
    if broken and answer.ending is not StopReason.LENGTH:
        words = f"Malformed function call: {broken[0].name}({broken[0].json})"
        return {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": words, "index": 0}
    ending: dict[str, Any] = {"finishReason": STOPS[answer.ending], "index": 0}
    words = "".join(piece.text for piece in _last_words(answer.pieces))
    if words and any(isinstance(piece, Think) for piece in answer.pieces):
        part = {"text": "", "thoughtSignature": sign(words)}
        ending = {"content": {"role": "model", "parts": [part]}, **ending}
    return ending


def _last_words(pieces: tuple[Piece, ...]) -> list[Say]:
    """The words at the end, which are one part of the reply however they were said."""
    last = itertools.takewhile(lambda piece: isinstance(piece, Say), reversed(pieces))
    return [piece for piece in last if isinstance(piece, Say)][::-1]


def _head(answer: Answer, heard: Heard) -> Json:
    digest = hashlib.sha256(heard.fingerprint.encode("utf-8", "surrogatepass")).hexdigest()
    return {"responseId": digest[:22], "modelVersion": answer.model or heard.model}


def _usage(usage: Usage) -> Json:
    """The service counts thoughts beside `candidatesTokenCount`, and cached tokens in `promptTokenCount`; what is zero
    it leaves out."""
    spoken = usage.output - usage.reasoning
    told = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": spoken,
        "thoughtsTokenCount": usage.reasoning,
        "cachedContentTokenCount": usage.cached,
        "totalTokenCount": usage.input + usage.output,
    }
    details = {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.input}]}
    return {name: number for name, number in told.items() if number} | details


def _error(refused: RequestRefused) -> Json:
    status = 503 if refused.status == BUSY else refused.status
    error: dict[str, Any] = {
        "code": status,
        "message": str(refused),
        "status": STATUSES.get(status, "UNKNOWN" if status >= 500 else "FAILED_PRECONDITION"),
    }
    if refused.code:
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": refused.code, "domain": "googleapis.com"}
        error["details"] = [info]
    return {"error": error}
