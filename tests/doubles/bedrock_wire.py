"""The Bedrock Converse protocol as a server speaks it: the AWS event stream, documents, refusals, signed requests.

Event names and fields follow https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from hermes_agent.core.messages import StopReason, Usage
from hermes_agent.host.inbound.message import Request
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
from tests.doubles.anthropic_request import seal, sign
from tests.doubles.aws_signature import scope, signed_by
from tests.doubles.aws_stream import event, exception
from tests.doubles.bedrock_request import marked_blocks, read_bedrock
from tests.doubles.breakpoints import BreakpointCache

Json = Mapping[str, Any]

QUESTION = re.compile(r"/model/(?P<model>[^/]+)/(?P<method>converse|converse-stream)")
SIGNED_SERVICE = "bedrock"
STOPS = {
    StopReason.END: "end_turn",
    StopReason.TOOL_CALLS: "tool_use",
    StopReason.LENGTH: "max_tokens",
    StopReason.REFUSED: "content_filtered",
    StopReason.OTHER: "stop_sequence",
}
ERROR_KINDS = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
# The service has no status of its own for "busy" but 503.
BUSY = 529


class BedrockWire:
    """One server's side of the protocol."""

    base = ""
    models_path = "/foundation-models"
    stream_type = "application/vnd.amazon.eventstream"
    # The service promises no sign of life; a client passes over events that it does not know.
    keep_alive = event("keepAlive", {})
    malformed = event("contentBlockDelta", {"delta": {"text": "never"}})[:-1] + b"\0"

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = secrets
        self._cache = BreakpointCache()
        self._cached: dict[str, tuple[int, int]] = {}

    def asks(self, request: Request) -> bool:
        """Whether this is a question to a model."""
        return request.method == "POST" and QUESTION.fullmatch(request.path) is not None

    def key(self, request: Request) -> str:
        """The bearer key, or the access key that signed the request; empty without a credential. Raises
        `RequestRefused` where the signature is not right."""
        told = request.headers.get("authorization", "")
        if told.startswith("Bearer ") or not told:
            return told.removeprefix("Bearer ")
        signer = signed_by(request, self._secrets)
        if not signer or scope(request)[1] != SIGNED_SERVICE:
            raise RequestRefused(
                "The request signature we calculated does not match the signature you provided. Check your AWS Secret"
                " Access Key and signing method.",
                status=403,
                kind="InvalidSignatureException",
            )
        return signer

    def read(self, request: Request) -> Heard:
        """The question. Raises `RequestRefused` for what the protocol does not allow."""
        found = QUESTION.fullmatch(request.path)
        assert found is not None  # `asks` said so
        try:
            model, stream = unquote(found["model"]), found["method"] == "converse-stream"
            heard = read_bedrock(request.body, model, stream=stream)
            self._cached[heard.prompt] = self._cache.account(model, marked_blocks(request.body))
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
        yield event("messageStart", {"role": "assistant"})
        for index, piece in enumerate(answer.pieces):
            if isinstance(piece, Call):
                start = {"toolUseId": call_id(piece, heard, index, "tooluse"), "name": piece.name}
                yield event("contentBlockStart", {"contentBlockIndex": index, "start": {"toolUse": start}})
            for delta in _deltas(piece, answer.pace.characters):
                yield event("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})
            yield event("contentBlockStop", {"contentBlockIndex": index})
        yield event("messageStop", {"stopReason": STOPS[answer.ending]})
        yield event("metadata", {"usage": _usage(usage), "metrics": {"latencyMs": 42}})

    def document(self, answer: Answer, heard: Heard, usage: Usage) -> bytes:
        """The reply in one piece."""
        content = [_block(piece, heard, index) for index, piece in enumerate(answer.pieces)]
        plain = {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": STOPS[answer.ending],
            "usage": _usage(usage),
            "metrics": {"latencyMs": 42},
        }
        return json.dumps(plain).encode()

    def refusal(self, refused: RequestRefused) -> bytes:
        """The body of an error reply; its kind is in a header."""
        return json.dumps({"message": str(refused)}).encode()

    def refusal_headers(self, refused: RequestRefused) -> Mapping[str, str]:
        """The kind of an error."""
        kind = _kind(refused)
        return {"x-amzn-errortype": f"{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/"} if kind else {}

    def error_event(self, refused: RequestRefused) -> bytes:
        """An exception inside a stream that began well."""
        kind = _kind(refused) or "InternalServerException"
        return exception(kind[0].lower() + kind[1:], {"message": str(refused)})

    def models(self, names: tuple[str, ...]) -> bytes:
        """The list of models."""
        entries = [{"modelId": name, "modelName": name, "responseStreamingSupported": True} for name in names]
        return json.dumps({"modelSummaries": entries}).encode()

    def unknown_model(self, name: str) -> RequestRefused:
        """The refusal of a model that is not there."""
        return RequestRefused(f"The provided model identifier is invalid: {name}")

    def wrong_key(self, key: str) -> RequestRefused:
        """The refusal of a credential."""
        if key:
            words = "The security token included in the request is invalid."
            return RequestRefused(words, status=403, kind="UnrecognizedClientException")
        return RequestRefused("Missing Authentication Token", status=403, kind="MissingAuthenticationTokenException")


def _kind(refused: RequestRefused) -> str:
    if refused.kind.endswith("Exception"):
        return refused.kind
    return ERROR_KINDS.get(503 if refused.status == BUSY else refused.status, "")


def _deltas(piece: Piece, size: int) -> Iterator[Json]:
    match piece:
        case Say(text=text):
            yield from ({"text": part} for part in chunks(text, size))
        case Think(text=text, redacted=True):
            yield {"reasoningContent": {"redactedContent": seal(text)}}
        case Think(text=text):
            yield from ({"reasoningContent": {"text": part}} for part in chunks(text, size))
            yield {"reasoningContent": {"signature": sign(text)}}
        case Call():
            yield {"toolUse": {"input": ""}}
            yield from ({"toolUse": {"input": part}} for part in chunks(piece.json, size))


def _block(piece: Piece, heard: Heard, index: int) -> Json:
    match piece:
        case Say(text=text):
            return {"text": text}
        case Think(text=text, redacted=True):
            return {"reasoningContent": {"redactedContent": seal(text)}}
        case Think(text=text):
            return {"reasoningContent": {"reasoningText": {"text": text, "signature": sign(text)}}}
        case Call():
            identity = call_id(piece, heard, index, "tooluse")
            return {"toolUse": {"toolUseId": identity, "name": piece.name, "input": json.loads(piece.json)}}


def _usage(usage: Usage) -> Json:
    """The service counts what it read from or wrote to the cache beside `inputTokens`, and thinking as output."""
    fresh = usage.input - usage.cached - usage.cache_write
    return {
        "inputTokens": fresh,
        "outputTokens": usage.output,
        "totalTokens": usage.input + usage.output,
        "cacheReadInputTokens": usage.cached,
        "cacheWriteInputTokens": usage.cache_write,
    }
