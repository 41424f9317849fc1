"""Gemini generateContent, as the Gemini API and Vertex AI speak it: writing requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from hermes_agent.core.errors import (
    AuthRefused,
    ModelNotFound,
    OutOfCredit,
    Overloaded,
    RateLimited,
    ServerFailed,
    TimedOut,
)
from hermes_agent.core.messages import File, Image, Part, Role, Text, Thinking, ToolCall, ToolResult
from hermes_agent.core.model import ModelRequest, Prefix, ToolSchema
from hermes_agent.providers.conversation import ConversationCompiler
from hermes_agent.providers.dialect import Dialect, Table
from hermes_agent.providers.gemini_schema import gemini_schema
from hermes_agent.providers.pieces import arguments_of, attached, json_bytes, safe_id, words_in, written
from hermes_agent.providers.replies.gemini import GeminiDecoder
from hermes_agent.providers.sight import MEGABYTE, PictureRules
from hermes_agent.providers.tool_schemas import ToolRules
from hermes_agent.providers.vendor import Level
from hermes_agent.providers.verifier import Turn

# google.rpc.Code by name, and the reasons that an ErrorInfo gives; INVALID_ARGUMENT is told apart by its words.
ERRORS: Table = {
    "API_KEY_INVALID": AuthRefused,
    "API_KEY_SERVICE_BLOCKED": AuthRefused,
    "BILLING_DISABLED": OutOfCredit,
    "DEADLINE_EXCEEDED": TimedOut,
    "INTERNAL": ServerFailed,
    "NOT_FOUND": ModelNotFound,
    "RESOURCE_EXHAUSTED": RateLimited,
    "UNAUTHENTICATED": AuthRefused,
    "UNAVAILABLE": Overloaded,
}
# What stands for the signature of a call that no Gemini made: https://ai.google.dev/gemini-api/docs/thought-signatures
ANY_SIGNATURE = "skip_thought_signature_validator"
# Tokens of reasoning for the models that take a number instead of a level; every one of them takes these.
BUDGETS: dict[Level, int] = {
    "none": 0,
    "minimal": 512,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 24_576,
}


RULES = ToolRules(longest_name=64, letter_first=True, inline=True)
# https://ai.google.dev/gemini-api/docs/image-understanding: no GIF, and 20 MB for a whole request
PICTURES = PictureRules(
    types=frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}), largest=15 * MEGABYTE
)


class GeminiCompiler(ConversationCompiler):
    """Writes generateContent requests: instruction and tools first, then the contents, what may change last."""

    rules = RULES
    pictures = PICTURES

    def _path(self) -> str:
        return f"/models/{quote(self._route.model, safe='')}:streamGenerateContent?alt=sse"

    def _headers(self, body: bytes) -> dict[str, str]:  # noqa: ARG002 - see the base
        return {"x-goog-api-key": self._route.key} if self._route.key else {}

    def _head(self, prefix: Prefix) -> bytes:
        head: dict[str, Any] = {}
        if prefix.system.strip():
            head["systemInstruction"] = {"parts": [{"text": prefix.system}]}
        if self.has_tools(prefix):
            head["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in prefix.tools]}]
        begun = json_bytes(head)[:-1]
        return begun + (b',"contents":[' if head else b'"contents":[')

    def _turn(self, turn: Turn) -> bytes:
        if turn.role is Role.ASSISTANT:
            return json_bytes({"role": "model", "parts": self._spoken(turn.parts)})
        # A turn of responses holds as many as there were calls, and nothing else.
        responses = [self._response(result) for result in turn.results]
        said = [block for result in turn.results for block in self._beside(result)]
        said += (block for part in turn.parts for block in _blocks(part))
        contents = [{"role": "user", "parts": parts} for parts in (responses, said) if parts]
        return b",".join(json_bytes(content) for content in contents)

    def _spoken(self, parts: list[Part]) -> list[dict[str, Any]]:
        """What the model wrote, each signature on the part that it came on."""
        blocks: list[dict[str, Any]] = []
        for place, part in enumerate(parts):
            before = parts[place - 1] if place else None
            signature = before.opaque if isinstance(before, Thinking) else ""
            match part:
                case Thinking() if part.opaque and not _bears(parts[place + 1 : place + 2]):
                    thought = {"thought": True} if part.text else {}
                    blocks.append({"text": part.text, **thought, "thoughtSignature": part.opaque})
                case Thinking():
                    continue
                case _:
                    signed = {"thoughtSignature": signature} if signature else {}
                    blocks += ({**block, **signed} for block in _blocks(part))
        return self._with_any_signature(blocks)

    def _with_any_signature(self, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A model that wants a signature under its calls is told where there cannot be one: another model made them."""
        first = next((block for block in blocks if "functionCall" in block), None)
        if first is not None and self._route.facts.thinking != "budget":
            first.setdefault("thoughtSignature", ANY_SIGNATURE)
        return blocks or [{"text": ""}]

    def _response(self, result: ToolResult) -> dict[str, Any]:
        words = words_in(result)
        response: dict[str, Any] = {
            "id": safe_id(result.call_id),
            "name": result.name,
            "response": {"error": words or "Error"} if result.is_error else {"output": words},
        }
        if self._route.facts.result_media:
            blocks = [block for part in attached(result) for block in _blocks(part)]
            if blocks:
                response["parts"] = blocks
        return {"functionResponse": response}

    def _beside(self, result: ToolResult) -> Iterator[dict[str, Any]]:
        """What a result holds besides words, for the models that want it as the user's."""
        parts = [] if self._route.facts.result_media else attached(result)
        if parts:
            yield {"text": f"(Attachment of the result of {result.name}, call {safe_id(result.call_id)}:)"}
        for part in parts:
            yield from _blocks(part)

    def _tail(self, request: ModelRequest, max_output: int | None) -> dict[str, Any]:
        has_tools = self.has_tools(request.prefix)
        tail: dict[str, Any] = {}
        if has_tools and not request.use_tools:
            tail["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
        config: dict[str, Any] = {}
        if max_output is not None:
            config["maxOutputTokens"] = max_output
        level = self._route.effort(request.effort, tools=has_tools)
        if level is not None:
            config["thinkingConfig"] = self._thinking(level, max_output)
        if config:
            tail["generationConfig"] = config
        return tail

    def _thinking(self, level: Level, max_output: int | None) -> dict[str, Any]:
        if self._route.facts.thinking != "budget":
            return {"thinkingLevel": level.upper(), "includeThoughts": True}
        budget = BUDGETS[level]
        if max_output is not None and budget:
            budget = max(BUDGETS["minimal"], min(budget, max_output // 2))
        return {"thinkingBudget": budget, "includeThoughts": budget > 0}


def _declaration(tool: ToolSchema) -> dict[str, Any]:
    declaration: dict[str, Any] = {"name": tool.name, "description": tool.description}
    parameters = gemini_schema(tool.parameters)
    if parameters.get("properties"):  # an object without any is refused
        declaration["parameters"] = parameters
    return declaration


def _bears(following: list[Part]) -> bool:
    """Whether the next part is one that a signature came on."""
    return any(isinstance(part, (Text, ToolCall)) for part in following)


def _blocks(part: Part) -> Iterator[dict[str, Any]]:
    match part:
        case Text():
            yield {"text": part.text}
        case Image(url=""):
            yield {"inlineData": {"mimeType": part.media_type, "data": part.data}}
        case Image():
            yield {"fileData": {"mimeType": part.media_type, "fileUri": part.url}}
        case File():
            words = written(part)
            yield {"text": words} if words else {"inlineData": {"mimeType": part.media_type, "data": part.data}}
        case ToolCall():
            call = {"id": safe_id(part.id), "name": part.name, "args": arguments_of(part)}
            yield {"functionCall": call}
        case Thinking() | ToolResult():
            return


DIALECT = Dialect(errors=ERRORS, compiler=GeminiCompiler, reader=GeminiDecoder, tools=RULES)
