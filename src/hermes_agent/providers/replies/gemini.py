"""Gemini generateContent: reading the streamed answer.

A signature belongs to the part that it came on: words or a call. It is kept as the `opaque` of the thinking right
before that part, which has no words of its own where the model showed none, and goes back onto the same part.
"""

from __future__ import annotations

from typing import Any

import msgspec

from hermes_agent.core.errors import ThinkingRefused
from hermes_agent.core.model import Delta, StopReason, Usage
from hermes_agent.providers.dialect import Table, Taken
from hermes_agent.providers.outcomes import failure
from hermes_agent.providers.pieces import json_bytes
from hermes_agent.providers.replies.reading import Block, ReplyReader
from hermes_agent.providers.route import Route

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
    """Reads one streamed answer."""

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
