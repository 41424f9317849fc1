"""The view of a conversation for a review that may write live: what is not clean as typed stubs, and so all that the
agent said after it saw the outside; its copies of the workspace masked, its thinking left out; the rest verbatim."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace

from hermes_agent.core.messages import (
    File,
    Image,
    Message,
    Origin,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Trust,
)
from hermes_agent.core.records import with_texts
from hermes_agent.learning.sources import Sources, class_of

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
KINDS = frozenset(
    {"failed", "unknown_tool", "bad_arguments", "refused", "unapproved", "stale_write", "interrupted", "put_aside"}
)
EXCEPTIONS = (
    *("ModuleNotFoundError", "ImportError", "SyntaxError", "IndentationError", "NameError", "TypeError", "ValueError"),
    *("KeyError", "IndexError", "AttributeError", "AssertionError", "FileNotFoundError", "PermissionError"),
    *("TimeoutError", "ConnectionError", "RuntimeError", "ZeroDivisionError", "UnicodeDecodeError", "OSError"),
)


def stubbed(messages: Iterable[Message], sources: Sources, own: Origin = Origin.OWNER) -> tuple[Message, ...]:
    """The messages with stubs in place of what is not clean; without thinking. `own` is the label of the
    conversation's person."""
    shown: list[Message] = []
    seen = sources.prompt
    for message in messages:
        classes = [class_of(part, message.role, seen, own) for part in message.parts]
        both = zip(message.parts, classes, strict=True)
        parts = (_part(part, trust, sources) for part, trust in both if not isinstance(part, Thinking))
        shown.append(replace(message, parts=tuple(parts)))
        seen = max((seen, *classes))
    return tuple(message for message in shown if message.parts)


def stub(result: ToolResult) -> str:
    """A result without its text: tool, size, exit code, error class."""
    facts = [result.name, f"{len(result.text):,} characters"]
    if others := sum(not isinstance(part, Text) for part in result.parts):
        facts.append(f"{others} attachments")
    last = result.text.rstrip().rpartition("\n")[2]
    if code := EXIT.search(last):
        facts.append(f"exit {code[1]}")
    if error := _class_of(result.text, failed=result.is_error):
        facts.append(f"error {error}")
    return f"[withheld: {', '.join(facts)}]"


def _part(part: Part, trust: Trust, sources: Sources) -> Part:
    match part:
        case ToolResult() if trust:
            return replace(part, parts=(Text(text=stub(part), origin=Origin.RUNTIME),))
        case ToolCall(arguments=arguments):
            hidden = _withheld if trust is Trust.OUTSIDE else sources.masked
            return replace(part, arguments=with_texts(arguments, hidden), broken="")
        case Text(text=text, origin=origin) if trust is Trust.OUTSIDE or (trust and origin is not Origin.MODEL):
            return Text(text=f"[withheld: {len(text):,} characters of {origin.value}]", origin=Origin.RUNTIME)
        case Text(text=text):
            return replace(part, text=sources.masked(text)) if trust else part
        case Image() | File() if trust:
            return Text(text=f"[withheld: {part.kind}, {part.media_type}]", origin=Origin.RUNTIME)
        case _:
            return part


def _withheld(text: str) -> str:
    return f"[withheld: {len(text):,} characters]"


def _class_of(text: str, *, failed: bool) -> str:
    if failed and (kind := _kind_in(text)) in KINDS:
        return kind
    if not failed and not EXIT.search(text.rstrip().rpartition("\n")[2]):
        return ""
    low = text.lower()
    named = next((name for name in EXCEPTIONS if name in text), "")
    return named or next((name for words, name in CLASSES.items() if words in low), "")


def _kind_in(words: str) -> str:
    """The kind of an error as this program writes it for a model; its sentence may quote anybody."""
    try:
        found = json.JSONDecoder().raw_decode(words)[0]
    except ValueError:
        return ""
    return str(found.get("kind")) if isinstance(found, dict) else ""
