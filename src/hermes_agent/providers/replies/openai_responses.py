"""OpenAI Responses: reading the streamed answer.

Events follow https://platform.openai.com/docs/api-reference/responses-streaming.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from hermes_agent.core.model import Delta, StopReason, Usage
from hermes_agent.providers.dialect import Table, Taken
from hermes_agent.providers.pieces import json_bytes
from hermes_agent.providers.replies.reading import Block, ReplyReader
from hermes_agent.providers.route import Route

INCOMPLETE = {
    "max_output_tokens": StopReason.LENGTH,
    "content_filter": StopReason.REFUSED,
}
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


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    id: str = ""
    output: list[msgspec.Raw] | None = None
    usage: _Usage | None = None
    incomplete_details: _Incomplete | None = None
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
    """What a thinking part of this dialect keeps: a reasoning item as it came, the name of a response that the
    provider keeps, or the phase of the words that follow (`commentary`, `final_answer`), which the model wants back."""

    REASONING = "reasoning"

    type: str = ""
    response: str = ""
    phase: str = ""


T = TypeVar("T")
_items = msgspec.json.Decoder(_Item).decode
_responses = msgspec.json.Decoder(_Response).decode
_kept = msgspec.json.Decoder(KeptItem)
NOTHING_KEPT = KeptItem()


def kept_item(opaque: str) -> KeptItem:
    """What `opaque` is, empty where another dialect wrote it."""
    try:
        return _kept.decode(opaque) if opaque.startswith("{") else NOTHING_KEPT
    except msgspec.MsgspecError:
        return NOTHING_KEPT


class ResponsesDecoder(ReplyReader[_Event]):
    """Reads one streamed response. A block is an item of its output, by its place there."""

    _parse = msgspec.json.Decoder(_Event).decode
    _event_name = "event of the Responses API"

    def __init__(self, route: Route, errors: Table, taken: Taken) -> None:
        super().__init__(route, errors, taken)
        self._end = ""
        self._last = _Response()
        self._summary: dict[int, int] = {}  # the part of the summary that each reasoning item is at
        self._response = Block("thinking")
        self._blocks = {"response": self._response}

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

    def _inside(self, raw: msgspec.Raw, parse: Callable[[msgspec.Raw], T]) -> T:
        try:
            return parse(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._broken(f"sent a piece that is no {self._event_name} ({error}).") from error

    def _ended(self) -> bool:
        return self.done

    def _close(self) -> StopReason:
        if self._route.vendor.quirks.chains and self._last.id:
            self._response.opaque = json_bytes({"response": self._last.id}).decode()
        if self._refusal and not self.words:
            self._blocks["refusal"] = Block("text", [self._refusal])
            return StopReason.REFUSED
        if self._end == "response.incomplete":
            details = self._last.incomplete_details or _Incomplete()
            return INCOMPLETE.get(details.reason or "", StopReason.OTHER)
        calls = any(block.kind == "call" for block in self._blocks.values())
        return StopReason.TOOL_CALLS if calls else StopReason.END

    def _tokens(self) -> Usage:
        usage = self._last.usage
        if usage is None or usage.input_tokens is None:
            return Usage(known=False)
        before = usage.input_tokens_details or _InputDetails()
        after = usage.output_tokens_details or _OutputDetails()
        return Usage(
            input=usage.input_tokens,
            output=usage.output_tokens or 0,
            cached=before.cached_tokens or 0,
            cache_write=before.cache_write_tokens or 0,
            reasoning=after.reasoning_tokens or 0,
        )
