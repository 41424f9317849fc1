"""Command output for the model, and removal of secrets from saved output."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.late import Needs
from hermes_agent.host.secret_rules import LEAST, is_drawn
from hermes_agent.host.secrets import Secrets
from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.place import PlaceFailed, Running
from hermes_agent.tools.output import Caps, cleaned, head_and_tail, is_binary

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
