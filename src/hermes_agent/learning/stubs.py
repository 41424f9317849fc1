"""The view of a conversation for a review that may write live: outside text as typed stubs, what the agent copied
of it masked, its thinking left out; the rest verbatim."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hermes_agent.agent.compaction.note import OPENING
from hermes_agent.core.messages import (
    File,
    Image,
    Message,
    Origin,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from hermes_agent.learning.sources import Sources, is_outside

LONGEST_LINE = 160
EXIT = re.compile(r"\bexit (-?\d{1,3})\b")
# Words that stand for an error whoever wrote them: nothing else of the text is let through.
CLASSES = {
    "command not found": "command_not_found",
    "no such file or directory": "no_such_file",
    "permission denied": "permission_denied",
    "is a directory": "is_a_directory",
    "connection refused": "connection_refused",
    "could not resolve": "no_such_host",
    "name or service not known": "no_such_host",
    "timed out": "timed_out",
    "no space left": "disk_full",
    "syntax error": "syntax_error",
    "unauthorized": "unauthorized",
    "forbidden": "forbidden",
    "not found": "not_found",
}
EXCEPTIONS = (
    *("ModuleNotFoundError", "ImportError", "SyntaxError", "IndentationError", "NameError", "TypeError", "ValueError"),
    *("KeyError", "IndexError", "AttributeError", "AssertionError", "FileNotFoundError", "PermissionError"),
    *("TimeoutError", "ConnectionError", "RuntimeError", "ZeroDivisionError", "UnicodeDecodeError", "OSError"),
)


def stubbed(messages: Iterable[Message], sources: Sources) -> tuple[Message, ...]:
    """The messages with stubs in place of outside text and what the agent copied of it; without its thinking."""
    shown = (_stubbed(message, sources) for message in messages)
    return tuple(message for message in shown if message.parts)


def stub(result: ToolResult) -> str:
    """A result without its text: tool, size, exit code, error class, and the first line from this program."""
    outside = [part for part in result.parts if isinstance(part, Text) and part.origin is not Origin.RUNTIME]
    ours = [part.text for part in result.parts if isinstance(part, Text) and part.origin is Origin.RUNTIME]
    text = "".join(part.text for part in outside)
    facts = [result.name, f"{len(text):,} characters"]
    if others := sum(not isinstance(part, Text) for part in result.parts):
        facts.append(f"{others} attachments")
    last = text.rstrip().rpartition("\n")[2]
    if code := EXIT.search(last):
        facts.append(f"exit {code[1]}")
    if error := _class_of(text, ours, failed=result.is_error):
        facts.append(f"error {error}")
    said = next((line for words in ours for line in words.splitlines() if line.strip() and line[:1] != "{"), "")
    note = f'; this program said: "{said[:LONGEST_LINE]}"' if said else ""
    return f"[withheld: {', '.join(facts)}{note}]"


def _stubbed(message: Message, sources: Sources) -> Message:
    parts = (_part(part, message.role, sources) for part in message.parts)
    return replace(message, parts=tuple(part for part in parts if part is not None))


def _part(part: Part, role: Role, sources: Sources) -> Part | None:
    match part:
        case Thinking():
            return None
        case ToolResult() if is_outside(part, role):
            return replace(part, parts=(Text(text=stub(part), origin=Origin.RUNTIME),))
        case ToolCall(arguments=arguments):
            return replace(part, arguments=_masked(arguments, sources), broken="")
        case Text(text=text):
            return _text(part, text, role, sources)
        case Image() | File():
            return Text(text=f"[withheld: {part.kind}, {part.media_type}]", origin=Origin.RUNTIME)
        case _:
            return part


def _text(part: Text, text: str, role: Role, sources: Sources) -> Text:
    summary = role is Role.USER and part.origin is Origin.MODEL and text.startswith(OPENING)
    if is_outside(part, role) or (summary and sources.any_outside):
        return Text(text=f"[withheld: {len(text):,} characters of {part.origin.value}]", origin=Origin.RUNTIME)
    return replace(part, text=sources.masked(text)) if part.origin is Origin.MODEL else part


def _masked(value: Any, sources: Sources) -> Any:  # noqa: ANN401 - arguments are JSON
    match value:
        case str():
            return sources.masked(value)
        case Mapping():
            return {key: _masked(inner, sources) for key, inner in value.items()}
        case list() | tuple():
            return [_masked(inner, sources) for inner in value]
        case _:
            return value


def _class_of(text: str, ours: Iterable[str], *, failed: bool) -> str:
    for words in ours:
        kind = _kind_in(words)
        if kind:
            return kind
    if not failed and not EXIT.search(text.rstrip().rpartition("\n")[2]):
        return ""
    low = text.lower()
    named = next((name for name in EXCEPTIONS if name in text), "")
    return named or next((name for words, name in CLASSES.items() if words in low), "")


def _kind_in(words: str) -> str:
    """The kind of an error as this program writes it for a model; its sentence may quote anybody."""
    try:
        found = json.loads(words)
    except ValueError:
        return ""
    kind = found.get("kind") if isinstance(found, dict) else ""
    return kind if isinstance(kind, str) and re.fullmatch(r"[a-z_]{1,40}", kind) else ""
