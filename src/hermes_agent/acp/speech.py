"""What an editor is shown of a session: its events as updates of the protocol's version 1."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, assert_never

from acp import schema

from hermes_agent.core.events import (
    Compacted,
    Entry,
    MessageTaken,
    Notice,
    Outcome,
    Replied,
    RunEnded,
    Seen,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from hermes_agent.core.messages import Image, Retrying, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, ToolResult
from hermes_agent.core.shown import additions, words_of
from hermes_agent.core.streamed import Words

Update: TypeAlias = (
    schema.UserMessageChunk
    | schema.AgentMessageChunk
    | schema.AgentThoughtChunk
    | schema.ToolCallStart
    | schema.ToolCallProgress
    | schema.AgentPlanUpdate
    | schema.UsageUpdate
    | schema.SessionInfoUpdate
    | schema.AvailableCommandsUpdate
    | schema.ConfigOptionUpdate
    | schema.CurrentModeUpdate
)
KINDS: Mapping[str, schema.ToolKind] = {
    "read_file": "read",
    "skill_view": "read",
    "skills_list": "read",
    "write_file": "edit",
    "patch": "edit",
    "search_files": "search",
    "session_search": "search",
    "find_tools": "search",
    "terminal": "execute",
    "process": "execute",
    "execute_code": "execute",
    "web_search": "fetch",
    "web_extract": "fetch",
    "todo": "think",
    "clarify": "think",
    "delegate_task": "think",
}
"""The kinds of tools for the editor's pictures; every other tool is `other`."""
PLAN, USE = "todo", "use_tool"
ITEM = re.compile(r"\[([ >x-])\] [^:\n]*: (.*)")
STATES: Mapping[str, schema.PlanEntryStatus] = {" ": "pending", ">": "in_progress", "x": "completed"}
HEAD = re.compile(r"^--- a/.*\n\+\+\+ b/(.*)\n@@ -\d+(?:,\d+)? \+(\d+)", re.MULTILINE)
CUT = re.compile(r"^\[\d+ more lines of diff\]$", re.MULTILINE)
MOST_SHOWN = 100_000
"""Characters of a result that the editor is shown."""


class Speech:
    """Turns the events of one session into updates, in their order; also those of the log when a session is loaded."""

    def __init__(self, workspace: str) -> None:
        self._workspace = Path(workspace)
        self._turn = ("", -1)
        self._words, self._has_thought = Words(), False
        self._calls: dict[str, ToolCall] = {}

    def updates(self, seen: Seen | Entry, *, own: bool = False) -> Iterator[Update]:
        """The updates for an event; `own`: the editor shows the message itself, as it comes from there."""
        event, name = seen.event, f"{seen.run}:{seen.number}"
        match event:
            case MessageTaken(message=message, principal=principal) if principal and not own:
                yield from _heard(words_of(message) or ", ".join(additions(message)), name)
            case TurnStarted() | TextDelta() | Retrying() | ThinkingDelta() | Replied():
                yield from self._of_reply(seen.run, event)
            case ToolStarted() | ToolProgress() | ToolEnded():
                yield from self._of_call(event)
            case Notice(text=text, level=level, live=live) if level != "info" or live:
                yield notice(text, name)
            case Compacted(before=before, after=after):
                words = f"The conversation was compacted: {before:,} tokens became {after:,}. The log keeps everything."
                yield notice(words, name)
            case RunEnded(outcome=outcome, text=text):
                self._calls.clear()
                if outcome is Outcome.ANSWERED:
                    yield from self._said(self._words.rest(text))
                elif outcome is not Outcome.STOPPED and text:
                    yield notice(text, name)
            case _:
                pass

    def _of_reply(
        self, run: str, event: TurnStarted | TextDelta | Retrying | ThinkingDelta | Replied
    ) -> Iterator[Update]:
        match event:
            case TurnStarted(turn=turn):
                self._begin(run, turn)
                self._words.take(event)
            case TextDelta() | Retrying():
                yield from self._said(self._words.take(event))
            case ThinkingDelta(text=text):
                self._has_thought = True
                yield self._thought(text)
            case Replied():
                yield from self._replied(run, event)
            case _:
                assert_never(event)

    def _begin(self, run: str, turn: int) -> None:
        if (run, turn) != self._turn:
            self._turn, self._words, self._has_thought = (run, turn), Words(), False

    def _said(self, text: str) -> Iterator[Update]:
        if text:
            yield message(text, ":".join(map(str, self._turn)))

    def _thought(self, text: str) -> Update:
        turn = ":".join(map(str, self._turn))
        return schema.AgentThoughtChunk(
            session_update="agent_thought_chunk", content=block(text), message_id=f"{turn}:thought"
        )

    def _replied(self, run: str, event: Replied) -> Iterator[Update]:
        self._begin(run, event.turn)
        thoughts = "".join(part.text for part in event.message.parts if isinstance(part, Thinking))
        if thoughts and not self._has_thought:
            yield self._thought(thoughts)
        yield from self._said(self._words.take(event))
        for call in event.message.tool_calls:
            self._calls[call.id] = call
            yield self._announced(call, meant(call))

    def _announced(self, call: ToolCall, inner: ToolCall, title: str = "") -> Update:
        return schema.ToolCallStart(
            session_update="tool_call",
            tool_call_id=call.id,
            title=title or inner.name,
            kind=KINDS.get(inner.name, "other"),
            status="pending",
            locations=self._locations(inner.arguments),
            raw_input=dict(call.arguments),
        )

    def _of_call(self, event: ToolStarted | ToolProgress | ToolEnded) -> Iterator[Update]:
        if event.call_id not in self._calls:  # A call that a program of the agent makes.
            made = self._calls[event.call_id] = ToolCall(id=event.call_id, name=event.tool, arguments={})
            yield self._announced(made, made)
        call = meant(self._calls[event.call_id])
        match event:
            case ToolStarted(summary=summary):
                yield progress(event.call_id, status="in_progress", title=summary or None)
            case ToolProgress(text=text):
                yield progress(event.call_id, status="in_progress", content=[shown(text)])
            case ToolEnded(message=said, is_error=failed):
                yield progress(
                    event.call_id,
                    status="failed" if failed else "completed",
                    content=list(self._results(call, said.parts, failed=failed)) or None,
                )
                if event.tool == PLAN and not failed:
                    yield plan(text_of(said.parts))

    def _results(self, call: ToolCall, parts: Iterable[object], *, failed: bool) -> Iterator[Any]:
        text = text_of(parts)
        path, content = call.arguments.get("path"), call.arguments.get("content")
        if call.name == "write_file" and not failed and not HEAD.search(text) and isinstance(path, str):
            yield schema.FileEditToolCallContent(type="diff", path=self._absolute(path), new_text=str(content or ""))
            return
        is_edit = KINDS.get(call.name) == "edit" and not failed and not CUT.search(text)
        found = list(diffs_in(text)) if is_edit else []
        for name, old, new in found:
            yield schema.FileEditToolCallContent(type="diff", path=self._absolute(name), old_text=old, new_text=new)
        if text and not found:
            yield shown(text[:MOST_SHOWN])
        for image in (part for result in parts if isinstance(result, ToolResult) for part in result.parts):
            if isinstance(image, Image) and image.data:
                picture = schema.ImageContentBlock(type="image", data=image.data, mime_type=image.media_type)
                yield schema.ContentToolCallContent(type="content", content=picture)

    def _locations(self, arguments: Mapping[str, Any]) -> list[schema.ToolCallLocation] | None:
        path, line = arguments.get("path"), arguments.get("offset")
        if not isinstance(path, str) or not path:
            return None
        line = line if isinstance(line, int) and line > 0 else None
        return [schema.ToolCallLocation(path=self._absolute(path), line=line)]

    def _absolute(self, path: str) -> str:
        return str(self._workspace / Path(path).expanduser())


SPEECHES: Mapping[int, type[Speech]] = {1: Speech}
"""How updates are worded, by the version of the protocol. Version 2 is a draft, and gets its line when it is stable."""


def block(text: str) -> schema.TextContentBlock:
    """A text as a content block."""
    return schema.TextContentBlock(type="text", text=text)


def message(text: str, name: str, meta: dict[str, Any] | None = None) -> schema.AgentMessageChunk:
    """A piece of the agent's message of that name."""
    return schema.AgentMessageChunk(
        session_update="agent_message_chunk", content=block(text), message_id=name, field_meta=meta
    )


def _heard(text: str, name: str) -> Iterator[Update]:
    """A person's message that came from another surface, or from the log."""
    if text:
        yield schema.UserMessageChunk(session_update="user_message_chunk", content=block(text), message_id=name)


def notice(text: str, name: str) -> schema.AgentMessageChunk:
    """A sentence of the runtime, marked as such."""
    return message(f"{text}\n\n", f"notice:{name}", {"hermes": {"notice": True}})


def shown(text: str) -> schema.ContentToolCallContent:
    """A text as content of a call."""
    return schema.ContentToolCallContent(type="content", content=block(text))


def progress(call: str, **changes: Any) -> schema.ToolCallProgress:  # noqa: ANN401 - fields of the schema
    """A change of a call."""
    return schema.ToolCallProgress(session_update="tool_call_update", tool_call_id=call, **changes)


def plan(text: str) -> schema.AgentPlanUpdate:
    """The plan that the tool `todo` answered with."""
    entries = [
        schema.PlanEntry(content=words, priority="medium", status=STATES[box])
        for box, words in ITEM.findall(text)
        if box in STATES
    ]
    return schema.AgentPlanUpdate(session_update="plan", entries=entries)


def meant(call: ToolCall) -> ToolCall:
    """The call that `use_tool` passes on, or the call itself."""
    inner = call.arguments.get("arguments")
    if call.name != USE or not isinstance(inner, Mapping):
        return call
    return ToolCall(id=call.id, name=str(call.arguments.get("name", "")), arguments=inner)


def text_of(parts: Iterable[object]) -> str:
    """The words of a call's results."""
    results = [part for part in parts if isinstance(part, ToolResult)]
    return "".join(part.text for result in results for part in result.parts if isinstance(part, Text))


def diffs_in(text: str) -> Iterator[tuple[str, str, str]]:
    """The unified diffs in a result: path, and the lines before and after of each hunk."""
    heads = list(HEAD.finditer(text))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        body = text[head.start() : following.start() if following else None].split("\n")[2:]
        old, new = list[str](), list[str]()
        for line in body:
            if line.startswith("@@ ") or not line:
                continue
            if line[0] not in " +-":
                break
            if line[0] != "+":
                old.append(line[1:])
            if line[0] != "-":
                new.append(line[1:])
        yield head[1], "\n".join(old), "\n".join(new)
