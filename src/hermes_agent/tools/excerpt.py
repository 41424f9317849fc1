"""Limits the size of tool results: head and tail of large output, saved in full; strips terminal escapes."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import mimetypes
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import File, Image, Text
from hermes_agent.core.tool import Answer
from hermes_agent.host.late import Needs
from hermes_agent.host.paths import write_private
from hermes_agent.tools.settings import ToolOutputSettings

# CSI and OSC sequences, and the other escapes of two characters (ECMA-48).
_ESCAPES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_=>()#%].?)"
_CONTROLS = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
_OVERWRITTEN = r"[^\n]*\r(?!\n)(?=[^\n])"
_BINARY_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Largest size of one tool result that the model gets, in bytes and lines."""

    max_bytes: int = 50_000
    max_lines: int = 2000


def caps_of(needs: Needs) -> Caps:
    """The limits in the settings."""
    output = needs.get(ToolOutputSettings)
    return Caps(max_bytes=output.max_bytes, max_lines=output.max_lines)


def cleaned(text: str) -> str:
    """The text as a screen shows it: without escape sequences, with only the last state of rewritten lines, and
    storable in a database."""
    if "\x1b" in text:
        text = re.sub(_ESCAPES, "", text)
    if "\r" in text:
        text = re.sub(_OVERWRITTEN, "", text.replace("\r\n", "\n"))
    return re.sub(_CONTROLS, "\ufffd", text)


def is_binary(sample: bytes) -> bool:
    """Whether output is binary: it holds a NUL, or more than a tenth is not UTF-8."""
    if b"\0" in sample:
        return True
    return sample.decode("utf-8", "replace").count("\ufffd") > _BINARY_SHARE * max(20, len(sample))


def fits(text: str, caps: Caps) -> bool:
    """Whether the text is within the limits."""
    return text.count("\n") < caps.max_lines and len(text.encode()) <= caps.max_bytes


def head_and_tail(head: str, tail: str, caps: Caps, *, left_out: str) -> str:
    """Whole lines from the beginning and the end, half of the limit each, with `left_out` between them."""
    room, lines = max(0, caps.max_bytes - len(left_out.encode()) - 2) // 2, max(1, (caps.max_lines - 1) // 2)
    first = _within(head.split("\n")[:lines], room)
    last = _within(tail.split("\n")[-lines:][::-1], room)[::-1]
    return "\n".join([*first, left_out, *last])


def _within(lines: list[str], room: int) -> list[str]:
    kept: list[str] = []
    for line in lines:
        size = len(line.encode()) + 1
        if size > room:
            return kept or [line.encode()[:room].decode("utf-8", "ignore")]
        room -= size
        kept.append(line)
    return kept


KEPT_SECONDS = 30 * 86_400
"""How long whole results are kept."""
# These keep within their own limits and are read on page by page.
PAGED = frozenset({"read_file"})


def _sweep(folder: Path, oldest: float) -> None:
    for path in folder.rglob("*"):
        with suppress(OSError):
            if path.lstat().st_mtime < oldest:
                path.unlink()


class Spill:
    """Truncates large texts in tool results to `caps`, and saves them in full, with secrets redacted, in `folder`
    (below HERMES_HOME/cache), like files that a tool gives. Results of `read_file` are left alone: they are paged
    already."""

    def __init__(self, folder: Path, caps: Caps | None = None, redact: Callable[[str], str] = str) -> None:
        self._folder = folder
        self._redact = redact
        self._caps = caps or Caps()
        self._swept = False

    async def fit(self, tool: str, answer: Answer, key: str, own: str = "") -> Answer:
        """The answer, with each large text truncated and each file named by its path. `key` is the call's; the files go
        into the folder `own`."""
        if tool in PAGED or not any(self._is_large(part) for part in answer.parts):
            return answer
        parts = [
            await asyncio.to_thread(self._saved, part, f"{key}-{index}", self._folder / own)
            if self._is_large(part)
            else part
            for index, part in enumerate(answer.parts)
        ]
        return replace(answer, parts=tuple(parts))

    def _is_large(self, part: Text | Image | File) -> bool:
        return isinstance(part, File) or (isinstance(part, Text) and not fits(part.text, self._caps))

    def _saved(self, part: Text | Image | File, key: str, folder: Path) -> Text | Image | File:
        text = self._redact(part.text) if isinstance(part, Text) else ""
        data = text.encode("utf-8", "replace") if text else base64.b64decode(getattr(part, "data", ""))
        suffix = mimetypes.guess_extension(part.media_type) or ".bin" if isinstance(part, File) else ".txt"
        path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:20]}{suffix}"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(path, data, durable=False)
        if not self._swept:
            self._swept = True
            _sweep(self._folder, path.stat().st_mtime - KEPT_SECONDS)
        if isinstance(part, File):
            return Text(text=f"[{part.name}, {part.media_type}, {len(data):,} bytes, is in {path}]", origin=part.origin)
        lines = text.count("\n") + 1
        note = f"[{len(data):,} bytes, {lines:,} lines; the middle is left out, the whole is in {path}]"
        return Text(text=head_and_tail(text, text, self._caps, left_out=note), origin=part.origin)
