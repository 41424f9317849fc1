"""Renders the chat's tool calls as lines: an animated one while a call runs, permanent ones when it has ended."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from hermes_agent.cli.chat.text import BOLD, CYAN, DIM, GREEN, RED, clean, elapsed, one_line, paint, wrapped
from hermes_agent.cli.output import shortened, width
from hermes_agent.cli.result import answer_of, failed_with
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import ToolEnded
from hermes_agent.core.messages import ToolCall
from hermes_agent.core.shown import plural

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_PER_SECOND = 8
SOON = 0.3
"""Seconds after which a call is slow enough for a clock."""
MOST_DIFF_LINES = 40
NARROW = 28
"""Columns below which a call's line has no room for its time."""
NOTE = re.compile(r"\[.*\]")  # what the tool itself says of a command: `[exit 1, 0.3 s]`
PLAN = "todo"
ITEM = re.compile(r"\[([ >x-])\] [^:]*: (.*)")
BOXES = {" ": ("○", ("0",)), ">": ("▸", (BOLD,)), "x": ("✓", (DIM,)), "-": ("-", (DIM,))}
"""Of a plan's items, by their state: mark and colour."""
MOST_OUTPUT_LINES, FIRST_LINES = 10, 3
LONGEST_SHOWN = 600
"""Characters of a result that its one line may show."""
DIFF = re.compile(r"^--- .*\n\+\+\+ .*\n", re.MULTILINE)


@dataclass(slots=True, kw_only=True)
class Call:
    """A running tool call in the chat. `began`: its start on the spinner's clock; `progress`: last progress line;
    `content`: what it writes into a file."""

    tool: str
    summary: str
    effect: Effect
    began: float
    progress: str = ""
    content: str = ""


def wished(call: ToolCall) -> Call:
    """A `Call` built from the model's request, for a call whose start was not seen."""
    about = next((value for value in call.arguments.values() if isinstance(value, str)), "")
    summary = f"{call.name}: {one_line(about)}" if about else call.name
    content = call.arguments.get("content")
    is_file = isinstance(call.arguments.get("path"), str) and isinstance(content, str)
    return Call(
        tool=call.name, summary=summary, effect=Effect.READS, began=0.0, content=str(content) if is_file else ""
    )


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
    """The permanent lines of a call: mark, summary, seconds and a short result or exit status; then the output, diff,
    plan, new file or error, long ones folded."""
    text = answer_of(ended)
    failed = failed_with(text) if call is not None and call.effect is Effect.EXEC and not ended.is_error else ""
    clock = elapsed(ended.seconds) if columns >= NARROW else ""
    summary = call.summary if call is not None and call.summary else ended.tool
    end = f" · {failed}" if failed else ""
    words = one_line(summary, max(8 if clock else 3, columns - len(clock) - len(end) - 3))
    red = ended.is_error or bool(failed)
    line = f"{paint('✗', RED) if red else paint('✓', GREEN)} {f'{words} {paint(clock, DIM)}'.rstrip()}{paint(end, RED)}"
    if ended.is_error:
        reason = "\n".join(f"  {line}" for line in wrapped(failure(text), columns - 2))
        last = (
            f"\n{paint(f'  {one_line(call.progress, columns - 2)}', DIM)}" if call is not None and call.progress else ""
        )
        return f"{line}\n{paint(reason, RED)}{last}"
    if below := _below(text, call, columns):
        found = DIFF.search(text)
        brief = one_line(text[: found.start()]) if found else one_line(text) if call and call.content else ""
    else:
        brief = short_result(text, call)
    room = columns - width(words) - len(clock) - len(end) - 6
    if brief and room >= min(12, len(brief)):
        line += paint(f" · {one_line(brief, room)}", RED if failed else DIM)
    return f"{line}\n{below}" if below else line


def _below(text: str, call: Call | None, columns: int) -> str:
    """What stands below the line of a call that did not fail; empty for nothing."""
    if found := DIFF.search(text):
        return diff_lines(text[found.start() :])
    if call is None:
        return ""
    if call.tool == PLAN and (plan := plan_lines(text, columns)):
        return plan
    if call.content:
        added = [paint(f"  {one}", GREEN) for one in folded([f"+{line}" for line in _lines(call.content)], columns)]
        return "\n".join(added)
    lines = output_of(text) if call.effect is Effect.EXEC else []
    return "\n".join(paint(f"  {line}", DIM) for line in folded(lines, columns)) if len(lines) > 1 else ""


def folded(lines: Sequence[str], columns: int) -> list[str]:
    """At most ten lines of an output, each on one line of the terminal: the first, how many are left out, the last."""
    shown = [shortened(line.expandtabs(4), columns - 2) for line in lines]
    if len(shown) <= MOST_OUTPUT_LINES:
        return shown
    over = len(shown) - MOST_OUTPUT_LINES + 1
    between = shortened(f"… {plural(over, 'more line')} (Ctrl-O)", columns - 2)
    return [*shown[:FIRST_LINES], between, *shown[FIRST_LINES + over :]]


def is_folded(ended: ToolEnded, call: Call | None) -> bool:
    """Whether more came of a call than its lines show."""
    if call is not None and call.content:
        return len(_lines(call.content)) > MOST_OUTPUT_LINES
    text = answer_of(ended)
    lines = output_of(text)
    is_output = call is not None and call.effect is Effect.EXEC and not ended.is_error
    return len(lines) > (MOST_OUTPUT_LINES if is_output else 1) or len(text) > LONGEST_SHOWN


def unfolded(ended: ToolEnded, call: Call | None) -> str:
    """All that came of a call: what it wrote, or what it said."""
    return "\n".join(_lines(call.content if call is not None and call.content else answer_of(ended)))


def output_of(text: str) -> list[str]:
    """The lines of a command's result without what the tool itself says behind them."""
    lines = _lines(text)
    while lines and (NOTE.fullmatch(lines[-1]) or not lines[-1].strip()):
        lines.pop()
    return lines


def plan_lines(text: str, columns: int) -> str:
    """The plan that the tool `todo` gives, an item a line; empty if it is none."""
    lines = []
    for line in _lines(text):
        if (found := ITEM.fullmatch(line)) is None:
            return ""
        mark, codes = BOXES[found[1]]
        lines.append(f"  {paint(mark, *codes)} {paint(one_line(found[2], max(8, columns - 4)), *codes)}")
    return "\n".join(lines)


def short_result(text: str, call: Call | None) -> str:
    """A result in a few words: its only line, or the number of lines; nothing for a command without output."""
    lines = output_of(text[:200_000])
    if call is not None and call.effect is Effect.EXEC:
        return lines[0] if lines else ""
    lines = [line for line in _lines(text[:200_000]) if line.strip()]
    if not lines:
        return "nothing"
    return lines[0] if len(lines) == 1 else plural(len(lines), "line")


def _lines(text: str) -> list[str]:
    return clean(text).strip("\n").split("\n")


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


MOST_FOLDED, MOST_UNFOLDED = 50, 5_000
"""Outputs that are kept to be shown whole, and lines of one."""


class Folds:
    """Keeps the outputs of which a call's lines show a part."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, str]] = []
        self._given = 0

    def add(self, ended: ToolEnded, call: Call | None) -> None:
        """Keep what came of a call, if more than its lines show; `next` begins with the latest again."""
        if is_folded(ended, call):
            title = call.summary if call is not None else ended.tool
            self._kept = [*self._kept[-MOST_FOLDED:], (title, unfolded(ended, call))]
        self._given = 0

    def next(self, columns: int) -> str:
        """The whole of the latest kept output, then of the ones before; empty if there is none more."""
        if self._given >= len(self._kept):
            return ""
        self._given += 1
        title, text = self._kept[-self._given]
        lines = text.split("\n")
        over = [paint(f"… {len(lines) - MOST_UNFOLDED} more lines: `/history --full`", DIM)]
        head = paint(f"▾ {one_line(title, columns - 2)}", DIM)
        shown = [head, *(f"  {line}" for line in lines[:MOST_UNFOLDED])]
        return "\n".join([*shown, *over[: len(lines) > MOST_UNFOLDED]])
