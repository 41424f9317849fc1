"""Exports a session's log as Markdown, HTML or JSON lines."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import msgspec

from hermes_agent.app.operations.sessions import SessionRecord
from hermes_agent.core.clock import moment
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Entry, MessageTaken, Notice, Replied, RunEnded, ToolEnded, Undone
from hermes_agent.core.messages import File, Image, Message, Part, Role, Text, Thinking, ToolCall, ToolResult
from hermes_agent.core.shown import DAMAGE, additions, words_of
from hermes_agent.host.late import libraries

LONGEST_SHOWN = 2_000
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}}
section{{border-left:3px solid #ccc;padding-left:1rem;margin:1rem 0}}.user{{border-color:#36c}}
.assistant{{border-color:#393}}td,th{{border:1px solid #ccc;padding:.2rem .5rem}}table{{border-collapse:collapse}}
pre{{white-space:pre-wrap;overflow-wrap:anywhere}}h2{{font-size:.9rem;color:#666}}</style>
</head><body><h1>{title}</h1><p>{facts}</p>
{body}
</body></html>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One entry of an exported session: who said it, when, and the text."""

    who: str
    at: float
    text: str


def said_in(entries: Iterable[Entry]) -> list[Said]:
    """Messages and tool results in order, without undone ones; tool results are shortened."""
    spoken: list[tuple[int, Said]] = []
    for entry in entries:
        match entry.event:
            case MessageTaken(message=message) if message.is_runtime:
                if DAMAGE.fullmatch(message.text):
                    spoken.append((entry.number, Said(who="notice", at=entry.at, text=message.text)))
            case MessageTaken(message=message) | Replied(message=message):
                spoken.append((entry.number, _said(message, entry.at)))
            case ToolEnded(message=message, tool=tool):
                said = _said(message, entry.at)
                spoken.append((entry.number, Said(who=f"tool {tool}", at=said.at, text=said.text)))
            case Notice(text=text):
                spoken.append((entry.number, Said(who="notice", at=entry.at, text=text)))
            case RunEnded(outcome=outcome, text=text) if outcome.value != "answered":
                spoken.append((entry.number, Said(who=outcome.value, at=entry.at, text=text)))
            case Undone(to=to):
                spoken = [each for each in spoken if each[0] <= to]
            case _:
                pass
    return [said for _, said in spoken if said.text]


def as_markdown(session: SessionRecord, entries: Sequence[Entry]) -> str:
    """The transcript as Markdown."""
    parts = [f"# {session.title or session.id}", facts(session)]
    parts += [f"## {said.who} · {moment(said.at)}\n\n{said.text}" for said in said_in(entries)]
    return "\n\n".join(parts) + "\n"


def as_html(session: SessionRecord, entries: Sequence[Entry]) -> str:
    """The transcript as a self-contained HTML page without scripts, with the agent's Markdown as HTML."""
    markdown = libraries.markdown_it.MarkdownIt("commonmark", {"html": False}).enable("table")
    body = "\n".join(
        f'<section class="{html.escape(said.who.split()[0])}"><h2>{html.escape(said.who)} · {moment(said.at)}</h2>'
        f"{markdown.render(said.text) if said.who == 'assistant' else f'<pre>{html.escape(said.text)}</pre>'}</section>"
        for said in said_in(entries)
    )
    title = html.escape(session.title or session.id)
    return PAGE.format(title=title, facts=html.escape(facts(session)), body=body)


def as_jsonl(session: SessionRecord, entries: Sequence[Entry]) -> str:
    """The whole log: the session's record first, then every event, one JSON object per line."""
    encoder = msgspec.json.Encoder()
    return "".join(f"{encoder.encode(line).decode()}\n" for line in (session, *entries))


def facts(session: SessionRecord) -> str:
    """The session's facts in one line."""
    parts = [session.id, moment(session.created), session.surface, session.model, session.workspace]
    return " · ".join(part for part in parts if part)


def _said(message: Message, at: float) -> Said:
    if message.role is Role.USER:
        lines = [words_of(message), *(f"[{label}]" for label in additions(message))]
        return Said(who="user", at=at, text="\n\n".join(filter(None, lines)))
    texts = [text for part in message.parts if (text := _words(part))]
    return Said(who=message.role.value, at=at, text="\n\n".join(texts))


def _words(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Thinking():
            return ""
        case Image(media_type=media_type):
            return f"[image, {media_type}]"
        case File(name=name, media_type=media_type):
            return f"[file {name}, {media_type}]"
        case ToolCall(name=name, arguments=arguments):
            return f"`{name}` {msgspec.json.encode(dict(arguments)).decode()}"
        case ToolResult():
            over = len(part.text) - LONGEST_SHOWN
            return part.text if over <= 0 else f"{part.text[:LONGEST_SHOWN]}\n[{over:,} more]"
