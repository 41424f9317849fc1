"""Renders the chat's tool calls as lines: an animated one while a call runs, permanent ones when it has ended."""

from __future__ import annotations

import json
import re

from hermes_agent.cli.chat.text import CYAN, DIM, GREEN, RED, clean, elapsed, one_line, paint, wrapped
from hermes_agent.cli.output import width
from hermes_agent.cli.result import failed_with
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import ToolEnded
from hermes_agent.core.messages import ToolCall, ToolResult
from hermes_agent.core.plural import plural

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_PER_SECOND = 8
SOON = 0.3
"""Seconds after which a call is slow enough for a clock."""
MOST_DIFF_LINES = 40
NOTE = re.compile(r"\[.*\]")  # what the tool itself says of a command: `[exit 1, 0.3 s]`
DIFF = re.compile(r"^--- .*\n\+\+\+ .*\n", re.MULTILINE)


@dataclass(slots=True, kw_only=True)
class Call:
    """A running tool call in the chat. `began`: its start on the spinner's clock; `progress`: last progress line."""

    tool: str
    summary: str
    effect: Effect
    began: float
    progress: str = ""


def wished(call: ToolCall) -> Call:
    """A `Call` built from the model's request, for a call whose start was not seen."""
    about = next((value for value in call.arguments.values() if isinstance(value, str)), "")
    summary = f"{call.name}: {one_line(about)}" if about else call.name
    return Call(tool=call.name, summary=summary, effect=Effect.READS, began=0.0)


def running_line(call: Call, now: float, columns: int) -> str:
    """The line of a running call, at most `columns` cells wide."""
    seconds = now - call.began
    slow = seconds >= SOON
    mark = SPINNER[int(seconds * FRAMES_PER_SECOND) % len(SPINNER)] if slow else "•"
    clock = f" {elapsed(seconds)}" if slow else ""
    words = call.summary or call.tool
    if call.progress:
        words = f"{words} · {call.progress}"
    return f"{paint(mark, CYAN)} {one_line(words, max(8, columns - len(clock) - 3))}{paint(clock, DIM)}"


def ended_lines(ended: ToolEnded, call: Call | None, columns: int) -> str:
    """The permanent lines of a call: mark, summary, seconds and a short result, followed by the diff or error."""
    text = "".join(part.text for part in ended.message.parts if isinstance(part, ToolResult))
    summary = call.summary if call is not None and call.summary else ended.tool
    clock = elapsed(ended.seconds)
    if ended.is_error:
        head = f"{paint('✗', RED)} {one_line(summary, max(8, columns - len(clock) - 3))} {paint(clock, DIM)}"
        reason = "\n".join(f"  {line}" for line in wrapped(failure(text), columns - 2))
        return f"{head}\n{paint(reason, RED)}"
    found = DIFF.search(text)
    failed = failed_with(text) if call is not None and call.effect is Effect.EXEC else ""
    brief = one_line(text[: found.start()]) if found else failed_result(text, failed) or short_result(text, call)
    words = one_line(summary, max(8, columns - len(clock) - 3 - (len(failed) + 6 if failed else 0)))
    line = f"{paint('✗', RED) if failed else paint('✓', GREEN)} {words} {paint(clock, DIM)}"
    room = columns - width(words) - len(clock) - 6
    if brief and room >= min(12, len(brief)):
        line += paint(f" · {one_line(brief, room)}", RED if failed else DIM)
    return f"{line}\n{diff_lines(text[found.start() :])}" if found else line


def short_result(text: str, call: Call | None) -> str:
    """A result in a few words: its only line, the number of lines, or a command's last line and exit status."""
    lines = [line for line in clean(text[:200_000]).split("\n") if line.strip()]
    if not lines:
        return "nothing"
    if len(lines) == 1:
        return lines[0]
    if call is not None and call.effect is Effect.EXEC:
        last = lines[-1]
        return f"{last} {lines[-2]}" if NOTE.fullmatch(last) else last
    return plural(len(lines), "line")


def failed_result(text: str, failed: str) -> str:
    """A command's exit status (`failed`) and last output line; empty if it succeeded."""
    lines = [line for line in clean(text[-20_000:]).split("\n") if line.strip() and not NOTE.fullmatch(line)]
    return f"[{failed}] {lines[-1] if lines else ''}".strip() if failed else ""


def failure(text: str) -> str:
    """The error message of a failed call, with its hint."""
    try:
        found = json.loads(text)
    except ValueError:
        return clean(text).strip()[-600:]
    if not isinstance(found, dict) or "error" not in found:
        return clean(text).strip()[-600:]
    return clean(" ".join(str(found[name]) for name in ("error", "hint") if found.get(name)))[:600]


def diff_lines(diff: str) -> str:
    """A coloured unified diff without its header, cut after 40 lines."""
    lines = clean(diff).strip("\n").split("\n")[2:]
    shown = [_diff_line(line) for line in lines[:MOST_DIFF_LINES]]
    if len(lines) > MOST_DIFF_LINES:
        shown.append(paint(f"  … {len(lines) - MOST_DIFF_LINES} more lines", DIM))
    return "\n".join(shown)


def _diff_line(line: str) -> str:
    colours = {"+": GREEN, "-": RED, "@": CYAN}
    return paint(f"  {line}", colours.get(line[:1], DIM))
