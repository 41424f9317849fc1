"""Dialect of Gemini generateContent, for the Gemini API and Vertex AI: writes requests, reads streamed answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from hermes_agent.core.errors import (
    AuthRefused,
    ModelNotFound,
    OutOfCredit,
    Overloaded,
    RateLimited,
    ServerFailed,
    ThinkingRefused,
    TimedOut,
)
from hermes_agent.core.messages import (
    Delta,
    File,
    Image,
    ModelRequest,
    Part,
    Prefix,
    Role,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSchema,
    Usage,
)
from hermes_agent.providers.dialect import ConversationCompiler, Dialect
from hermes_agent.providers.outcomes import Table, Taken, failure
from hermes_agent.providers.reading import (
    Block,
    ReplyReader,
    arguments_of,
    attached,
    json_bytes,
    safe_id,
    words_in,
    written,
)
from hermes_agent.providers.route import Route
from hermes_agent.providers.tool_schemas import ToolRules
from hermes_agent.providers.vendor import Level
from hermes_agent.providers.verifier import MEGABYTE, PictureRules, Turn

# A signature belongs to the part that it came on: words or a call. It is kept as the `opaque` of the thinking right
# before that part, which has no words of its own where the model showed none, and goes back onto the same part.

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
    """Writes generateContent requests: instruction and tools first, then the contents, changing fields last."""

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
    # An object without properties is refused; this field, not `parameters`, takes plain JSON Schema.
    parameters = {"parametersJsonSchema": tool.parameters} if tool.parameters.get("properties") else {}
    return {"name": tool.name, "description": tool.description, **parameters}


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


STOPS = {
    "STOP": StopReason.END,
    "MAX_TOKENS": StopReason.LENGTH,
    "SAFETY": StopReason.REFUSED,
    "RECITATION": StopReason.REFUSED,
    "BLOCKLIST": StopReason.REFUSED,
    "PROHIBITED_CONTENT": StopReason.REFUSED,
    "SPII": StopReason.REFUSED,
    "LANGUAGE": StopReason.REFUSED,
    "IMAGE_SAFETY": StopReason.REFUSED,
    "MODEL_ARMOR": StopReason.REFUSED,
    "ESCALATION": StopReason.REFUSED,
}
# The model wrote something that the service itself could not read: another attempt may end better.
BROKEN = {
    "MALFORMED_FUNCTION_CALL": "wrote a tool call that cannot be read",
    "UNEXPECTED_TOOL_CALL": "called a tool that it may not use",
    "TOO_MANY_TOOL_CALLS": "called too many tools at once",
    "MALFORMED_RESPONSE": "wrote an answer that cannot be read",
}
SHOWN = 200


class _Call(msgspec.Struct):
    name: str = ""
    id: str = ""
    args: dict[str, Any] | None = None


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str = ""
    function_call: _Call | None = None


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None


class _Chunk(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: _Usage | None = None
    model_version: str | None = None
    response_id: str | None = None
    error: msgspec.Raw = msgspec.Raw(b"")

    @property
    def says_nothing(self) -> bool:
        """Whether it holds no field of an answer."""
        return not (self.candidates or self.prompt_feedback or self.usage_metadata or self.model_version)


class GeminiDecoder(ReplyReader[_Chunk]):
    """Decodes one streamed reply of Gemini."""

    _parse = msgspec.json.Decoder(_Chunk).decode
    _event_name = "piece of a Gemini answer"

    def __init__(self, route: Route, errors: Table, taken: Taken) -> None:
        super().__init__(route, errors, taken)
        self._finish = ""
        self._usage: _Usage | None = None

    def feed(self, data: bytes) -> list[Delta]:
        chunk = self._read(data)
        if chunk.error:
            raise self._failed(chunk.error)
        if chunk.says_nothing and not chunk.response_id:
            raise self._broken(f"sent what is no {self._event_name}.")
        self._usage = chunk.usage_metadata or self._usage
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason:
            self._finish = "SAFETY"
            self._refusal = chunk.prompt_feedback.block_reason_message or chunk.prompt_feedback.block_reason
        deltas: list[Delta] = []
        for candidate in (chunk.candidates or ())[:1]:
            for part in (candidate.content.parts if candidate.content else None) or ():
                deltas += self._take(part)
            if candidate.finish_reason:
                self._finish = candidate.finish_reason
                self._refusal = candidate.finish_message or self._finish
                self.done = chunk.usage_metadata is not None
        return deltas

    def _take(self, part: _Part) -> list[Delta]:
        deltas: list[Delta] = []
        if part.function_call is not None:
            call = part.function_call
            block = Block("call", id=call.id, name=call.name, pieces=[json_bytes(call.args or {}).decode()])
            self._add(block)
            deltas.append(self._called(call.name))
        elif part.text:
            deltas = self._open("thinking" if part.thought else "text").grow(part.text)
        if part.thought_signature:
            self._sign(part.thought_signature, own=part.function_call is not None or bool(part.text))
        self.content += bool(deltas or part.thought_signature)
        return deltas

    def _open(self, kind: str) -> Block:
        """The last block where it is of this kind, otherwise a new one."""
        last = self._blocks.get(len(self._blocks) - 1)
        if last is not None and last.kind == kind:
            return last
        return self._add(Block("thinking" if kind == "thinking" else "text"))

    def _add(self, block: Block) -> Block:
        self._blocks[len(self._blocks)] = block
        return block

    def _sign(self, signature: str, *, own: bool) -> None:
        """Keep the signature of the last block. On an empty part (not `own`) it is that of the words before it."""
        blocks = list(self._blocks.values())
        last = blocks[-1] if blocks else None
        place = len(blocks) - 1 if last is not None and (own or last.kind == "text") else len(blocks)
        if last is not None and last.kind == "thinking" and not last.opaque:
            last.opaque = signature
        elif 0 < place < len(blocks) and blocks[place - 1].kind == "thinking" and not blocks[place - 1].opaque:
            blocks[place - 1].opaque = signature
        else:
            blocks.insert(place, Block("thinking", opaque=signature))
            self._blocks = dict(enumerate(blocks))

    def _ended(self) -> bool:
        return bool(self._finish)

    def _close(self) -> StopReason:
        if self._finish in BROKEN:
            told = "" if self._refusal == self._finish else f" ({self._refusal[:SHOWN]})"
            raise self._broken(f"{BROKEN[self._finish]}{told}.")
        if self._finish == "MISSING_THOUGHT_SIGNATURE":
            raise failure(self._route, ThinkingRefused, f"misses a thought signature ({self._refusal[:SHOWN]}).")
        stop = STOPS.get(self._finish, StopReason.OTHER)
        calls = any(block.kind == "call" for block in self._blocks.values())
        return StopReason.TOOL_CALLS if calls and stop is StopReason.END else stop

    def _tokens(self) -> Usage:
        usage = self._usage
        if usage is None or usage.prompt_token_count is None:
            return Usage(known=False)
        thoughts = usage.thoughts_token_count or 0
        return Usage(
            input=usage.prompt_token_count + (usage.tool_use_prompt_token_count or 0),
            output=(usage.candidates_token_count or 0) + thoughts,
            cached=usage.cached_content_token_count or 0,
            reasoning=thoughts,
        )


DIALECT = Dialect(errors=ERRORS, compiler=GeminiCompiler, reader=GeminiDecoder, tools=RULES)
