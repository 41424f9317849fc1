"""Dialect of OpenAI Responses (https://platform.openai.com/docs/api-reference/responses/create), also for the sign-in
with ChatGPT: writes requests, reads streamed answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    counted,
    data_url,
    json_bytes,
    safe_id,
    written,
)
from hermes_agent.providers.route import Route
from hermes_agent.providers.verifier import Turn

# Events follow https://platform.openai.com/docs/api-reference/responses-streaming.

LEAST_OUTPUT = 16  # the API refuses a smaller limit
# A reasoning item goes back without its name: nothing is kept there under it, and a name binds it to its neighbours.
UNSENT = frozenset({"id", "status"})


class ResponsesCompiler(ConversationCompiler):
    """Writes Responses requests: the whole conversation, with the model's encrypted reasoning. The provider stores
    nothing."""

    def _path(self) -> str:
        return "/responses"

    def _head(self, prefix: Prefix) -> bytes:
        head: dict[str, Any] = {"model": self._route.model}
        instructions = prefix.system if prefix.system.strip() else self._route.vendor.quirks.instructions
        if instructions:
            head["instructions"] = instructions
        if self.has_tools(prefix):
            head["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in prefix.tools
            ]
        return json_bytes(head)[:-1] + b',"input":['

    def _tail(self, request: ModelRequest, max_output: int | None) -> dict[str, Any]:
        quirks = self._route.vendor.quirks
        has_tools = self.has_tools(request.prefix)
        tail: dict[str, Any] = {"stream": True, **quirks.also, "store": False}
        if has_tools and not request.use_tools:
            tail["tool_choice"] = "none"
        if max_output is not None and quirks.output_limit:
            tail["max_output_tokens"] = max(LEAST_OUTPUT, max_output)
        level = self._route.effort(request.effort, tools=has_tools)
        if level is not None:
            tail["reasoning"] = {"effort": level, "summary": "auto"}
            tail["include"] = ["reasoning.encrypted_content"]
        if quirks.cache_key and request.session:
            tail["prompt_cache_key"] = request.session
        return tail

    def _turn(self, turn: Turn) -> bytes:
        """Every turn has at least one item: an assistant's whose thinking cannot go back says nothing."""
        items = list(_said(turn.parts) if turn.role is Role.ASSISTANT else _heard(turn))
        return b",".join(json_bytes(item) for item in items)


def _said(parts: Iterable[Part]) -> Iterator[dict[str, Any]]:
    phase = ""  # of the next words
    for part in parts:
        match part:
            case Thinking():
                phase = kept_item(part.opaque).phase
                yield from _reasoning(part)
            case Text():
                content = [{"type": "output_text", "text": part.text}]
                named = {"phase": phase} if phase else {}
                yield {"type": "message", "role": "assistant", **named, "content": content}
                phase = ""
            case ToolCall():
                yield {
                    "type": "function_call",
                    "call_id": safe_id(part.id),
                    "name": part.name,
                    "arguments": json_bytes(arguments_of(part)).decode(),
                }
            case _:
                continue


def _reasoning(thought: Thinking) -> Iterator[dict[str, Any]]:
    """The reasoning item as it came, where this dialect kept one."""
    if kept_item(thought.opaque).type == KeptItem.REASONING:
        item: dict[str, Any] = msgspec.json.decode(thought.opaque)
        yield {name: value for name, value in item.items() if name not in UNSENT}


def _heard(turn: Turn) -> Iterator[dict[str, Any]]:
    for result in turn.results:
        yield {"type": "function_call_output", "call_id": safe_id(result.call_id), "output": _output(result)}
    content = [block for part in turn.parts for block in _blocks(part)]
    if content or not turn.results:
        yield {"type": "message", "role": "user", "content": content}


def _output(result: ToolResult) -> str | list[dict[str, Any]]:
    """Words alone as one text, otherwise a list; the protocol has no mark for a failure."""
    content = [block for part in result.parts for block in _blocks(part)]
    words = "\n\n".join(block["text"] for block in content if block["type"] == "input_text")
    if result.is_error and not words.startswith(("{", "Error")):
        content.insert(0, {"type": "input_text", "text": "Error:" if words else "Error"})
        words = f"Error: {words}" if words else "Error"
    return words if all(block["type"] == "input_text" for block in content) else content


def _blocks(part: Part) -> Iterator[dict[str, Any]]:
    match part:
        case Text():
            yield {"type": "input_text", "text": part.text}
        case Image():
            yield {"type": "input_image", "image_url": data_url(part), "detail": "auto"}
        case File():
            words = written(part)
            if words is None:
                yield {"type": "input_file", "filename": part.name, "file_data": data_url(part)}
            else:
                yield {"type": "input_text", "text": words}
        case _:
            return


INCOMPLETE = {"max_output_tokens": StopReason.LENGTH, "content_filter": StopReason.REFUSED}
GROWS = {
    "response.output_text.delta": "text",
    "response.function_call_arguments.delta": "call",
    "response.reasoning_summary_text.delta": "thinking",
    "response.reasoning_text.delta": "thinking",
}
PARAGRAPH = "\n\n"
END_MARK = b"[DONE]"  # some servers end with the mark of chat completions
NULL = b"null"


class _Content(msgspec.Struct):
    text: str = ""
    refusal: str = ""


class _Item(msgspec.Struct):
    type: str = ""
    call_id: str = ""
    name: str = ""
    phase: str | None = None
    arguments: str | None = None
    encrypted_content: str | None = None
    content: list[_Content] | None = None
    summary: list[_Content] | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: TokenDetails | None = None
    output_tokens_details: TokenDetails | None = None


class _Response(msgspec.Struct):
    output: list[msgspec.Raw] | None = None
    usage: _Usage | None = None
    incomplete_details: dict[str, Any] | None = None
    error: msgspec.Raw = msgspec.Raw(b"")


class _Event(msgspec.Struct):
    type: str = ""
    output_index: int = 0
    summary_index: int = 0
    delta: str = ""
    item: msgspec.Raw = msgspec.Raw(b"")
    response: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")


class KeptItem(msgspec.Struct):
    """Opaque content of a thinking part in this dialect: a reasoning item as received, or the phase of the words that
    follow (`commentary`, `final_answer`), which the model wants back."""

    REASONING = "reasoning"

    type: str = ""
    phase: str = ""


_items = msgspec.json.Decoder(_Item).decode
_responses = msgspec.json.Decoder(_Response).decode
_kept = msgspec.json.Decoder(KeptItem)
NOTHING_KEPT = KeptItem()


def kept_item(opaque: str) -> KeptItem:
    """Decodes `opaque`; empty where another dialect wrote it."""
    try:
        return _kept.decode(opaque) if opaque.startswith("{") else NOTHING_KEPT
    except msgspec.MsgspecError:
        return NOTHING_KEPT


class ResponsesDecoder(ReplyReader[_Event]):
    """Decodes one streamed response. A block is an output item, by its index."""

    _parse = msgspec.json.Decoder(_Event).decode
    _event_name = "event of the Responses API"

    def __init__(self, route: Route, errors: Table, taken: Taken) -> None:
        super().__init__(route, errors, taken)
        self._end = ""
        self._last = _Response()
        self._summary: dict[int, int] = {}  # the part of the summary that each reasoning item is at

    def feed(self, data: bytes) -> list[Delta]:
        if data.startswith(END_MARK):
            return []
        event = self._read(data)
        grows = GROWS.get(event.type)
        if grows is not None:
            return self._think(event) if grows == "thinking" else self._grow(grows, event)
        match event.type:
            case "response.output_item.added":
                return self._begin(event.output_index, self._item(event.item))
            case "response.output_item.done":
                return self._complete(event.output_index, event.item)
            case "response.completed" | "response.incomplete" | "response.failed":
                return self._stop(event)
            case "response.refusal.delta":
                self.content += 1
                self._refusal += event.delta
            case "error":
                raise self._failed(event.error if event.error else data)
        return []

    def _grow(self, kind: str, event: _Event) -> list[Delta]:
        block = self._blocks.get(event.output_index)
        if block is None or block.kind != kind:
            raise self._broken(f"sent a piece of item {event.output_index}, which never began as what it is.")
        self.content += 1
        return block.grow(event.delta)

    def _think(self, event: _Event) -> list[Delta]:
        before = self._summary.setdefault(event.output_index, event.summary_index)
        if before != event.summary_index:
            self._summary[event.output_index] = event.summary_index
            event.delta = PARAGRAPH + event.delta
        return self._grow("thinking", event)

    def _begin(self, index: int, item: _Item) -> list[Delta]:
        self.content += 1
        match item.type:
            case "message":
                self._blocks[("phase", index)] = Block("thinking")
                self._blocks[index] = Block("text")
            case "reasoning":
                self._blocks[index] = Block("thinking")
            case "function_call":
                self._blocks[index] = Block("call", id=item.call_id, name=item.name)
                return [self._called(item.name)]
            case _:
                self._blocks[index] = Block("")
        return []

    def _complete(self, index: int, raw: msgspec.Raw) -> list[Delta]:
        """Take what of a whole item did not come in pieces."""
        item = self._item(raw)
        deltas = [] if index in self._blocks else self._begin(index, item)
        block = self._blocks[index]
        self.content += 1
        match item.type:
            case "message":
                content = item.content or []
                self._refusal = self._refusal or "".join(part.refusal for part in content)
                words = "".join(part.text for part in content)
                if item.phase:
                    self._blocks[("phase", index)].opaque = json_bytes({"phase": item.phase}).decode()
            case "reasoning":
                words = PARAGRAPH.join(part.text for part in item.summary or item.content or [])
                block.opaque = bytes(raw).decode() if item.encrypted_content or item.content else ""
            case _:
                words = item.arguments or ""
                block.id, block.name = block.id or item.call_id, block.name or item.name
        return deltas if block.pieces else [*deltas, *block.grow(words)]

    def _stop(self, event: _Event) -> list[Delta]:
        self._last = self._inside(event.response, _responses)
        error = self._last.error
        if event.type == "response.failed" or (error and bytes(error) != NULL):
            raise self._failed(error)
        self._end, self.done = event.type, True
        missing = [(index, raw) for index, raw in enumerate(self._last.output or ()) if index not in self._blocks]
        return [delta for index, raw in missing for delta in self._complete(index, raw)]

    def _item(self, raw: msgspec.Raw) -> _Item:
        return self._inside(raw, _items)

    def _ended(self) -> bool:
        return self.done

    def _close(self) -> StopReason:
        if self._refusal and not self.words:
            self._blocks["refusal"] = Block("text", [self._refusal])
            return StopReason.REFUSED
        if self._end == "response.incomplete":
            reason = (self._last.incomplete_details or {}).get("reason")
            return INCOMPLETE.get(str(reason), StopReason.OTHER)
        calls = any(block.kind == "call" for block in self._blocks.values())
        return StopReason.TOOL_CALLS if calls else StopReason.END

    def _tokens(self) -> Usage:
        usage = self._last.usage or _Usage()
        return counted(usage.input_tokens, usage.output_tokens, usage.input_tokens_details, usage.output_tokens_details)


DIALECT = Dialect(errors=OPENAI_ERRORS, compiler=ResponsesCompiler, reader=ResponsesDecoder)
