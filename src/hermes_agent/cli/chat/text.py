"""Terminal text helpers: strip control codes, wrap or cut to a width, and colour."""

from __future__ import annotations

import re

from hermes_agent.cli.output import shortened, width

# A sequence that moves or colours; and whatever else is no text, such as the marks that turn the direction of writing.
SEQUENCE = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?)")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
LINK = re.compile("\x1b\\]8;[^\x07\x1b]*(?:\x07|\x1b\\\\)")
"""The begin or end of a link (OSC 8)."""
SGR = re.compile(f"\x1b\\[[0-9;]*m|{LINK.pattern}")
COLUMN = re.compile("^ *[-•] | {2,}")
MARKED = ("? ", "↻ ", "■ ")
BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"


def clean(text: str) -> str:
    """Strip control characters from untrusted text, except newlines and tabs."""
    return CONTROL.sub("", SEQUENCE.sub("", text).replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str, columns: int = 400) -> str:
    """The text on one line, collapsed and cut to `columns`."""
    return shortened(" ".join(clean(text[: columns * 8]).split())[: columns * 2], columns)


def wrapped(text: str, columns: int) -> list[str]:
    """Wrap at words to lines of at most `columns`; a longer word gets its own line."""
    lines: list[str] = []
    for paragraph in clean(text).split("\n"):
        line = ""
        for word in paragraph.split(" "):
            if line and width(line) + 1 + width(word) > columns:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(line)
    return lines


def hanging(text: str, columns: int) -> str:
    """Wrap lists and tables with a hanging indent at the last column that begins in the left half; diffs are
    unchanged, so that they can be copied."""
    lines = clean(text).split("\n")
    if any(line.startswith("@@ ") for line in lines):
        return "\n".join(lines)
    return "\n".join(broken for line in lines for broken in _hung(line, columns))


def _hung(line: str, columns: int) -> list[str]:
    if width(line) <= columns:
        return [line]
    starts = [found.end() for found in COLUMN.finditer(line) if found.end() <= columns // 2]
    begin = starts[-1] if starts else 0
    first, *more = wrapped(line[begin:], columns - width(line[:begin]))
    return [line[:begin] + first, *(" " * width(line[:begin]) + each for each in more)]


def paint(text: str, *codes: str) -> str:
    """Colour the text, each line separately."""
    begin = f"\x1b[{';'.join(codes)}m"
    return "\n".join(f"{begin}{line}\x1b[0m" if line else line for line in text.split("\n"))


def plain(text: str) -> str:
    """The text without colour codes."""
    return SGR.sub("", text)


def marked(text: str, columns: int) -> str:
    """Wrapped words that ask for attention: with a yellow mark, as yellow words cannot be read on a light ground."""
    mark, words = (text[0], text[2:]) if text[:2] in MARKED else ("!", text)
    return f"{paint(mark, BOLD, YELLOW)} " + "\n  ".join(wrapped(words, columns - 2))


def elapsed(seconds: float) -> str:
    """Format a duration: `0.4 s`, `12 s`, `3 min 05 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
