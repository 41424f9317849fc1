"""Dialect of OpenAI chat completions, also for OpenRouter, Ollama, vLLM, llama.cpp and many others: writes requests,
reads streamed answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

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
    Usage,
)
from hermes_agent.providers.dialect import ConversationCompiler, Dialect
from hermes_agent.providers.outcomes import OPENAI_ERRORS, Table, Taken
from hermes_agent.providers.reading import (
    Block,
    ReplyReader,
    TokenDetails,
    arguments_of,
    attached,
    counted,
    data_url,
    json_bytes,
    nine_id,
    safe_id,
    words_in,
    written,
)
from hermes_agent.providers.route import Route
from hermes_agent.providers.vendor import Level
from hermes_agent.providers.verifier import Turn

SEEN = "(I have the results.)"

# What tells a server that the last message is the beginning of the reply, in place of its closing brace.
PREFILL_MARKS = {"prefix": b',"prefix":true}', "partial": b',"partial":true}'}


class ChatCompiler(ConversationCompiler):
    """Writes chat completion requests: model, tools and messages first, changing fields last."""

    def __init__(self, route: Route) -> None:
        super().__init__(route)
        self._offered = True

    def take(self, request: ModelRequest) -> None:
        offered = request.use_tools or self._route.vendor.quirks.tool_choice
        if offered is not self._offered:
            self._offered, self._prefix = offered, None
        super().take(request)

    def has_tools(self, prefix: Prefix) -> bool:
        return self._offered and super().has_tools(prefix)

    def _path(self) -> str:
        return "/chat/completions"

    def _head(self, prefix: Prefix) -> bytes:
        head: dict[str, Any] = {"model": self._route.model}
        if self.has_tools(prefix):
            head["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in prefix.tools
            ]
        messages = b""
        if prefix.system.strip():
            messages = json_bytes({"role": self._route.vendor.quirks.system_role, "content": prefix.system}) + b","
        return json_bytes(head)[:-1] + b',"messages":[' + messages

    def _shown(self, fragments: list[bytes]) -> list[bytes]:
        mark = PREFILL_MARKS.get(self._route.vendor.quirks.prefill, b"") if self._prefill else b""
        return [*fragments[:-1], fragments[-1][:-1] + mark] if mark else fragments

    def _tail(self, request: ModelRequest, max_output: int | None) -> dict[str, Any]:
        quirks = self._route.vendor.quirks
        has_tools = self.has_tools(request.prefix)
        tail: dict[str, Any] = {"stream": True, **quirks.also}
        if quirks.stream_usage:
            tail["stream_options"] = {"include_usage": True}
        if has_tools and not request.use_tools and quirks.tool_choice:
            tail["tool_choice"] = "none"
        if max_output is not None:
            tail[quirks.max_tokens_field] = max_output
        level = self._route.effort(request.effort, tools=has_tools)
        if level is not None:
            tail.update(self._thinking(level))
        if request.prefill and quirks.prefill == "continue":
            tail.update(continue_final_message=True, add_generation_prompt=False)
        if quirks.cache_marks and self._route.model.startswith(quirks.cache_marks):
            hour = {"ttl": "1h"} if self._route.cache_ttl == "1h" else {}
            tail["cache_control"] = {"type": "ephemeral", **hour}
        if quirks.cache_key and request.session:
            tail["prompt_cache_key"] = request.session
        return tail

    def _thinking(self, level: Level) -> dict[str, Any]:
        """The fields that ask for this level of reasoning."""
        quirks = self._route.vendor.quirks
        if level == "none" and quirks.thinking_off:
            return dict(quirks.thinking_off)
        fields: dict[str, Any] = dict(quirks.thinking_on)
        if quirks.effort_field and self._route.facts.thinking == "effort":
            fields[quirks.effort_field] = {"effort": level} if quirks.effort_field == "reasoning" else level
        return fields

    def _turn(self, turn: Turn) -> bytes:
        if turn.role is Role.ASSISTANT:
            return json_bytes(self._assistant(turn))
        messages = [self._result(result) for result in turn.results]
        content = [*self._attached(turn.results), *(block for part in turn.parts for block in _blocks(part))]
        if content and messages and self._route.vendor.quirks.reply_after_results:
            messages.append({"role": "assistant", "content": SEEN})
        if content or not messages:
            messages.append({"role": "user", "content": _plain(content)})
        return b",".join(json_bytes(message) for message in messages)

    def _assistant(self, turn: Turn) -> dict[str, Any]:
        words = "".join(part.text for part in turn.parts if isinstance(part, Text))
        calls = [part for part in turn.parts if isinstance(part, ToolCall)]
        message: dict[str, Any] = {"role": "assistant", "content": words or (None if calls else "")}
        message.update(self._reasoning([part for part in turn.parts if isinstance(part, Thinking)], words))
        if calls:
            message["tool_calls"] = [
                {
                    "id": self._id(call.id),
                    "type": "function",
                    "function": {"name": call.name, "arguments": json_bytes(arguments_of(call)).decode()},
                }
                for call in calls
            ]
        return message

    def _reasoning(self, thoughts: list[Thinking], said: str) -> dict[str, Any]:
        name = self._route.vendor.quirks.reasoning_field
        if name == "reasoning_details":
            details = [entry for thought in thoughts if thought.opaque for entry in _details(thought.opaque)]
            return {name: details} if details else {}
        words = "".join(thought.text for thought in thoughts)
        if name == "thinking_parts" and words:
            thinking = {"type": "thinking", "thinking": [{"type": "text", "text": words}]}
            return {"content": [thinking, *([{"type": "text", "text": said}] if said else [])]}
        return {name: words} if name and words else {}

    def _id(self, call_id: str) -> str:
        return nine_id(call_id) if self._route.vendor.quirks.call_ids == "nine" else safe_id(call_id)

    def _result(self, result: ToolResult) -> dict[str, Any]:
        words = words_in(result)
        if not words and any(isinstance(part, (Image, File)) for part in result.parts):
            words = "(see the attachment in the next message)"
        if result.is_error and not words.startswith(("{", "Error")):
            words = f"Error: {words}" if words else "Error"
        return {"role": "tool", "tool_call_id": self._id(result.call_id), "content": words}

    def _attached(self, results: list[ToolResult]) -> Iterator[dict[str, Any]]:
        """A tool message holds words only: what else a tool answered follows as the user's."""
        for result in results:
            parts = attached(result)
            if parts:
                yield {
                    "type": "text",
                    "text": f"(Attachment of the result of {result.name}, call {self._id(result.call_id)}:)",
                }
            for part in parts:
                yield from _blocks(part)


def _details(opaque: str) -> list[msgspec.Raw]:
    """The blocks that this dialect kept; none where the model was asked in another one then."""
    try:
        return msgspec.json.decode(opaque, type=list[msgspec.Raw])
    except msgspec.MsgspecError:
        return []


def _blocks(part: Part) -> Iterator[dict[str, Any]]:
    match part:
        case Text():
            yield {"type": "text", "text": part.text}
        case Image():
            yield {"type": "image_url", "image_url": {"url": data_url(part)}}
        case File():
            words = written(part)
            if words is None:
                yield {"type": "file", "file": {"filename": part.name, "file_data": data_url(part)}}
            else:
                yield {"type": "text", "text": words}
        case _:
            return


def _plain(content: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Words alone as one text, which every server takes; a list only where there is more than words."""
    if all(block["type"] == "text" for block in content):
        return "\n\n".join(block["text"] for block in content)
    return content


STOPS = {
    "stop": StopReason.END,
    "end_turn": StopReason.END,
    "tool_calls": StopReason.TOOL_CALLS,
    "function_call": StopReason.TOOL_CALLS,
    "length": StopReason.LENGTH,
    "content_filter": StopReason.REFUSED,
}
END_MARK = b"[DONE]"
JOINED = frozenset({"text", "summary", "data"})


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Piece(msgspec.Struct):
    """A part of a content list: text, or (Mistral) thinking with parts of its own."""

    text: str = ""
    thinking: list[_Piece] = []


class _Delta(msgspec.Struct):
    content: str | list[_Piece] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None
    prompt_cache_hit_tokens: int | None = None
    cost: float | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: msgspec.Raw = msgspec.Raw(b"")


class ChatDecoder(ReplyReader[_Chunk]):
    """Decodes one streamed chat completion."""

    _parse = msgspec.json.Decoder(_Chunk).decode
    _event_name = "chat completion"

    def __init__(self, route: Route, errors: Table, taken: Taken) -> None:
        super().__init__(route, errors, taken)
        self._thought, self._text = Block("thinking"), Block("text")
        self._blocks = {"thinking": self._thought, "text": self._text}
        self._calls: list[tuple[int, Block]] = []  # with their `index`
        self._details: list[dict[str, Any]] = []
        self._reason = ""
        self._usage: _Usage | None = None

    def feed(self, data: bytes) -> list[Delta]:
        if data.startswith(END_MARK):
            self.done = True
            return []
        chunk = self._read(data)
        if chunk.error and bytes(chunk.error) != b"null":
            raise self._failed(chunk.error)
        if chunk.usage is not None:
            self._usage = chunk.usage
        deltas: list[Delta] = []
        for choice in chunk.choices or ():
            if choice.finish_reason:
                self._reason = choice.finish_reason
            if choice.delta is not None:
                self._take(choice.delta, deltas)
        return deltas

    def _take(self, delta: _Delta, deltas: list[Delta]) -> None:
        words = delta.content
        thought = delta.reasoning or delta.reasoning_content
        if isinstance(words, list):
            thought = thought or "".join(inner.text for piece in words for inner in piece.thinking)
            words = "".join(piece.text for piece in words)
        if delta.reasoning_details:
            self._add_details(delta.reasoning_details)
            thought = thought or "".join(_readable(entry) for entry in delta.reasoning_details)
        if thought:
            self.content += 1
            deltas += self._thought.grow(thought)
        if words:
            self.content += 1
            deltas += self._text.grow(words)
        if delta.refusal:
            self.content += 1
            self._refusal += delta.refusal
        for piece in delta.tool_calls or ():
            self._take_call(piece, deltas)

    def _take_call(self, piece: _Call, deltas: list[Delta]) -> None:
        self.content += 1
        call = self._call_of(piece)
        function = piece.function or _Function()
        if piece.id and not call.id:
            call.id = piece.id
        if function.name and not call.name:
            call.name = function.name
            deltas.append(self._called(call.name))
        if isinstance(function.arguments, dict):
            call.grow(json_bytes(function.arguments).decode())
        elif function.arguments:
            call.grow(function.arguments)

    def _call_of(self, piece: _Call) -> Block:
        """The call that a piece belongs to. Some servers leave out `index`, or give every call the index 0 and its
        own id."""
        named = piece.function is not None and bool(piece.function.name)
        for index, call in reversed(self._calls):
            same_place = piece.index is None or index == piece.index
            another = named and bool(call.name) and bool(piece.id) and piece.id != call.id
            if same_place and not another and not (piece.index is None and named):
                return call
        number = len(self._calls)
        call = self._blocks[number] = Block("call")
        self._calls.append((number if piece.index is None else piece.index, call))
        return call

    def _add_details(self, entries: list[dict[str, Any]]) -> None:
        """Join the pieces of reasoning details: they must go back as whole blocks, in their order."""
        for entry in entries:
            last = self._details[-1] if self._details else None
            same = last is not None and all(last.get(key) == entry.get(key) for key in ("type", "index"))
            if last is None or not same:
                self._details.append(dict(entry))
                continue
            for key, value in entry.items():
                if key in JOINED and isinstance(value, str) and isinstance(last.get(key), str):
                    last[key] += value
                elif value is not None:
                    last[key] = value

    def _ended(self) -> bool:
        return bool(self._reason) or self.done

    def _close(self) -> StopReason:
        stop = STOPS.get(self._reason, StopReason.OTHER if self._reason else StopReason.END)
        if self._calls and stop is StopReason.END:
            stop = StopReason.TOOL_CALLS
        if self._details:
            self._thought.opaque = json_bytes(self._details).decode()
        if self._refusal and not self._text.pieces:
            self._text.grow(self._refusal)
            stop = StopReason.REFUSED
        return stop

    def _tokens(self) -> Usage:
        usage = self._usage or _Usage()
        details = usage.prompt_tokens_details or TokenDetails()
        details.cached_tokens = details.cached_tokens or usage.prompt_cache_hit_tokens
        return counted(usage.prompt_tokens, usage.completion_tokens, details, usage.completion_tokens_details)

    def _cost(self) -> float | None:
        return self._usage.cost if self._usage and self._route.vendor.quirks.reports_cost else None


def _readable(entry: dict[str, Any]) -> str:
    """The words of one reasoning detail; encrypted ones have none."""
    words = entry.get("text") or entry.get("summary")
    return words if isinstance(words, str) else ""


DIALECT = Dialect(errors=OPENAI_ERRORS, compiler=ChatCompiler, reader=ChatDecoder)
