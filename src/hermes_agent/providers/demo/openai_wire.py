"""The OpenAI chat-completions protocol as a server speaks it: reading, writing, counting, refusing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from hermes_agent.core.model import Usage
from hermes_agent.host.inbound.message import Request
from hermes_agent.providers.demo.openai_reply import (
    COMMENT,
    OpenAIStyle,
    openai_document,
    openai_error,
    openai_events,
    openai_models,
    sse,
)
from hermes_agent.providers.demo.openai_request import read_openai
from hermes_agent.providers.demo.script import Answer, Heard, RequestRefused
from hermes_agent.providers.demo.usage import PrefixCache, count


class OpenAIWire:
    """One server's side of the protocol; it remembers the prompts that it saw, for `cached_tokens`."""

    base = "/v1"
    models_path = "/v1/models"
    stream_type = "text/event-stream; charset=utf-8"
    keep_alive = COMMENT
    malformed = b'data: {"id":"chatcmpl-1","choices":[{"ind\n\n'

    def __init__(self, style: OpenAIStyle | None = None) -> None:
        self._style = style or OpenAIStyle()
        self._cache = PrefixCache()

    def asks(self, request: Request) -> bool:
        """Whether this is a question to a model."""
        return (request.method, request.path) == ("POST", "/v1/chat/completions")

    def key(self, request: Request) -> str:
        """The credential that came with the request, empty without one."""
        return request.headers.get("authorization", "").removeprefix("Bearer ")

    def read(self, request: Request) -> Heard:
        """The question. Raises `RequestRefused` for what the protocol does not allow."""
        try:
            return read_openai(request.body)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise RequestRefused(f"Invalid request: {type(error).__name__}: {error}") from error

    def usage(self, answer: Answer, heard: Heard) -> Usage:
        """What the exchange counts as; to be asked once per exchange, in order."""
        return count(answer, heard.prompt, self._cache.shared(heard.prompt))

    def events(self, answer: Answer, heard: Heard, usage: Usage) -> Iterator[bytes]:
        """The streamed reply, one event at a time."""
        return openai_events(answer, heard, usage, self._style)

    def document(self, answer: Answer, heard: Heard, usage: Usage) -> bytes:
        """The reply in one piece."""
        return openai_document(answer, heard, usage, self._style)

    def refusal(self, refused: RequestRefused) -> bytes:
        """The body of an error reply."""
        return openai_error(refused)

    def refusal_headers(self, _refused: RequestRefused) -> Mapping[str, str]:
        """What the headers of an error reply say: nothing."""
        return {}

    def error_event(self, refused: RequestRefused) -> bytes:
        """An error that arrives inside a stream that began well."""
        return sse(json.loads(openai_error(refused)))

    def models(self, names: tuple[str, ...]) -> bytes:
        """The list of models."""
        return openai_models(names, self._style)

    def unknown_model(self, name: str) -> RequestRefused:
        """The refusal of a model that is not there."""
        message = f"The model `{name}` does not exist or you do not have access to it."
        return RequestRefused(message, status=404, code="model_not_found")

    def wrong_key(self, key: str) -> RequestRefused:
        """The refusal of a credential."""
        shown = f"{key[:4]}***" if key else "none"
        return RequestRefused(f"Incorrect API key provided: {shown}.", status=401, code="invalid_api_key")
