"""What an editor is shown of a session: its events as updates of the protocol's version 1."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from acp import schema
from acp.helpers import image_block, plan_entry, text_block, tool_content, tool_diff_content, update_plan
from pydantic import BaseModel

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
from hermes_agent.core.messages import (
    Image,
    Message,
    Retrying,
    Role,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolResult,
)
from hermes_agent.core.shown import additions, words_of
from hermes_agent.core.streamed import Words

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
        self._workspace, self._turn = Path(workspace), ""
        self._words, self._has_thought = Words(), False
        self._calls: dict[str, ToolCall] = {}

    def updates(self, seen: Seen | Entry, *, own: bool = False) -> Iterator[BaseModel]:
        """The updates for an event; `own`: the editor shows the message itself, as it comes from there."""
        event, name = seen.event, f"{seen.run}:{seen.number}"
        match event:
            case MessageTaken(message=said, principal=principal) if principal and not own:
                if text := words_of(said) or ", ".join(additions(said)):
                    yield schema.UserMessageChunk(
                        session_update="user_message_chunk", content=text_block(text), message_id=name
                    )
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
    ) -> Iterator[BaseModel]:
        if isinstance(event, ThinkingDelta):
            self._has_thought = True
            yield self._thought(event.text)
            return
        if isinstance(event, TurnStarted | Replied) and self._turn != (turn := f"{run}:{event.turn}"):
            self._turn, self._words, self._has_thought = turn, Words(), False
        replied = event.message if isinstance(event, Replied) else Message(role=Role.ASSISTANT, parts=())
        thoughts = "".join(part.text for part in replied.parts if isinstance(part, Thinking))
        if thoughts and not self._has_thought:
            yield self._thought(thoughts)
        yield from self._said(self._words.take(event))
        for call in replied.tool_calls:
            self._calls[call.id] = call
            yield self._announced(call)

    def _said(self, text: str) -> Iterator[BaseModel]:
        if text:
            yield message(text, self._turn)

    def _thought(self, text: str) -> BaseModel:
        return schema.AgentThoughtChunk(
            session_update="agent_thought_chunk", content=text_block(text), message_id=f"{self._turn}:thought"
        )

    def _announced(self, call: ToolCall) -> BaseModel:
        inner = meant(call)
        path, line = inner.arguments.get("path"), inner.arguments.get("offset")
        path, line = path if isinstance(path, str) else "", line if isinstance(line, int) and line > 0 else None
        return schema.ToolCallStart(
            session_update="tool_call",
            tool_call_id=call.id,
            title=inner.name,
            kind=KINDS.get(inner.name, "other"),
            status="pending",
            locations=[schema.ToolCallLocation(path=self._absolute(path), line=line)] if path else None,
            raw_input=dict(call.arguments),
        )

    def _of_call(self, event: ToolStarted | ToolProgress | ToolEnded) -> Iterator[BaseModel]:
        if event.call_id not in self._calls:  # A call that a program of the agent makes.
            made = self._calls[event.call_id] = ToolCall(id=event.call_id, name=event.tool, arguments={})
            yield self._announced(made)
        change: dict[str, Any] = {"status": "in_progress"}
        match event:
            case ToolStarted(summary=summary):
                change["title"] = summary or None
            case ToolProgress(text=text):
                change["content"] = [tool_content(text_block(text))]
            case ToolEnded(message=said, is_error=failed):
                call = meant(self._calls[event.call_id])
                content = list(self._results(call, said.parts, failed=failed))
                change = {"status": "failed" if failed else "completed", "content": content or None}
        yield schema.ToolCallProgress(session_update="tool_call_update", tool_call_id=event.call_id, **change)
        if isinstance(event, ToolEnded) and event.tool == PLAN and not event.is_error:
            yield plan(text_of(event.message.parts))

    def _results(self, call: ToolCall, parts: Iterable[object], *, failed: bool) -> Iterator[Any]:
        text, is_edit = text_of(parts), KINDS.get(call.name) == "edit" and not failed
        path, content = call.arguments.get("path"), call.arguments.get("content")
        if is_edit and call.name == "write_file" and not HEAD.search(text) and isinstance(path, str):
            yield tool_diff_content(self._absolute(path), str(content or ""))
            return
        found = list(diffs_in(text)) if is_edit and not CUT.search(text) else []
        for name, old, new in found:
            yield tool_diff_content(self._absolute(name), new, old)
        if text and not found:
            yield tool_content(text_block(text[:MOST_SHOWN]))
        for image in (part for result in parts if isinstance(result, ToolResult) for part in result.parts):
            if isinstance(image, Image) and image.data:
                yield tool_content(image_block(image.data, image.media_type))

    def _absolute(self, path: str) -> str:
        return str(self._workspace / Path(path).expanduser())


SPEECHES: Mapping[int, type[Speech]] = {1: Speech}
"""How updates are worded, by the version of the protocol. Version 2 is a draft, and gets its line when it is stable."""


def message(text: str, name: str, meta: dict[str, Any] | None = None) -> schema.AgentMessageChunk:
    """A piece of the agent's message of that name."""
    return schema.AgentMessageChunk(
        session_update="agent_message_chunk", content=text_block(text), message_id=name, field_meta=meta
    )


def notice(text: str, name: str) -> schema.AgentMessageChunk:
    """A sentence of the runtime, marked as such."""
    return message(f"{text}\n\n", f"notice:{name}", {"hermes": {"notice": True}})


def plan(text: str) -> schema.AgentPlanUpdate:
    """The plan that the tool `todo` answered with."""
    found = ITEM.findall(text)
    return update_plan(plan_entry(words, status=STATES[box]) for box, words in found if box in STATES)


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
    """The unified diffs in a result: path, and the lines before and after."""
    heads = list(HEAD.finditer(text))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        body = text[head.start() : following.start() if following else None].split("\n")[2:]
        lines = list(takewhile(lambda line: line[:1] in ("", " ", "+", "-") or line.startswith("@@ "), body))
        old = "\n".join(line[1:] for line in lines if line[:1] in (" ", "-"))
        yield head[1], old, "\n".join(line[1:] for line in lines if line[:1] in (" ", "+"))
