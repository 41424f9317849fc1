"""Command output for the model: excerpts, spilled files, and removal of secrets."""

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
from hermes_agent.host.secret_rules import LEAST, is_drawn
from hermes_agent.host.secrets import Secrets
from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.place import PlaceFailed, Running
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


SAMPLE = 8192
REWRITTEN = 8 << 20
"""Bytes of an ended output that is kept anew, with the names of its secrets. In a larger one, and while a command runs,
they are covered where they stand."""
CHUNK, OVERLAP = 4 << 20, 16 << 10
"""Bytes that are looked through at a time, and how many of them were before: a secret that was only half written, or
whose other half came with the next part, is found then. Multiples of `BLOCK`."""
BLOCK = 4096
FIRST_COVER_SECONDS, COVER_SECONDS = 0.25, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hiding:
    """How secrets are removed from output: `redact` replaces values by names, `mask` keeps the number of bytes."""

    redact: Callable[[str], str] = str
    mask: Callable[[str], str] = str


def hiding_of(needs: Needs) -> Hiding:
    """The removal of the home's secrets."""
    return Hiding(redact=needs.get(Secrets).redact, mask=needs.get(Secrets).mask)


class Cover:
    """Masks secrets in a command's output file incrementally, while it is written."""

    def __init__(self, running: Running, hiding: Hiding) -> None:
        self._running = running
        self._hiding = hiding
        self._done = 0
        self._turn = asyncio.Lock()

    async def catch_up(self) -> None:
        """Mask new output. Raises `PlaceFailed`."""
        async with self._turn:
            size = await self._running.size()
            while self._done < size:
                start = max(0, self._done - OVERLAP) // BLOCK * BLOCK
                raw = await self._running.read(start, CHUNK)
                if start + len(raw) <= self._done:
                    return
                await self._cover(start, raw)
                self._done = start + len(raw)

    async def _cover(self, start: int, raw: bytes) -> None:
        masked = await asyncio.to_thread(_changed, raw, self._hiding.mask)
        if masked == raw or len(masked) != len(raw):
            return
        for at in range(0, len(raw), BLOCK):
            if raw[at : at + BLOCK] != masked[at : at + BLOCK]:
                await self._running.cover(start + at, masked[at : at + BLOCK])


async def shown_output(running: Running, caps: Caps) -> str:
    """The output so far, truncated; only its head and tail are read into memory."""
    size = await running.size()
    head = await running.read(0, caps.max_bytes + 1)
    if is_binary(head[:SAMPLE]):
        return f"[the output is binary, {size:,} bytes; it is in {running.output_path}]"
    text = cleaned(head.decode("utf-8", "replace"))
    if size <= caps.max_bytes and text.count("\n") <= caps.max_lines:
        return text
    tail = await running.read(max(0, size - caps.max_bytes), caps.max_bytes)
    note = f"[{size:,} bytes; the middle is left out, the whole is in {running.output_path}]"
    return head_and_tail(text, cleaned(tail.decode("utf-8", "replace")).removesuffix("\n"), caps, left_out=note)


class Covers:
    """Masks secrets in the output files of running commands (a `Cover` for each), and removes them at the end."""

    def __init__(self, hiding: Hiding) -> None:
        self._hiding = hiding
        self._covers: dict[str, Cover] = {}

    def settled(self, text: str) -> str:
        """Complete lines of output without secrets, and without a last word that may go on as one in the next line."""
        word = (text.split() or [""])[-1]
        cut = len(word) if len(word) >= LEAST and text.endswith(word) and is_drawn(word.encode()) else 0
        return self._hiding.redact(text[: len(text) - cut])

    async def catch_up(self, running: Running) -> None:
        """Mask new output of a command."""
        cover = self._covers.setdefault(running.exec_id, Cover(running, self._hiding))
        with suppress(PlaceFailed):  # the next call says what is wrong with the place
            await cover.catch_up()

    async def keep(self, running: Running) -> None:
        """Mask periodically until the command or this process ends, at first more often."""
        waiting, pause = spawn(running.wait(), name=f"end of {running.exec_id}"), FIRST_COVER_SECONDS
        try:
            while not waiting.done():
                await asyncio.wait([waiting], timeout=pause)
                await self.catch_up(running)
                pause = min(2 * pause, COVER_SECONDS)
        finally:
            waiting.cancel()
            await self.catch_up(running)

    async def hide(self, running: Running) -> None:
        """Remove secrets from an ended command's saved output. Raises `PlaceFailed`."""
        cover, size = self._covers.pop(running.exec_id, None), await running.size()
        if size > REWRITTEN or cover is not None:
            await (cover or Cover(running, self._hiding)).catch_up()
            return
        raw, redact = await running.read(0, size), self._hiding.redact
        hidden = _changed(raw, redact) if size <= SAMPLE else await asyncio.to_thread(_changed, raw, redact)
        if hidden != raw:
            await running.rewrite(hidden)


def _changed(raw: bytes, change: Callable[[str], str]) -> bytes:
    return change(raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape") if raw else raw
