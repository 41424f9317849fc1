"""What a model is shown of a command's output, and what of it is kept: nothing that holds a secret."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hermes_agent.sandbox.place import Place, Running
from hermes_agent.tools.excerpt import Caps, cleaned, head_and_tail, is_binary

SAMPLE = 8192
LENT = ".lent"
"""The end of a file's name that a command is given a secret's value in."""
LOOKED_THROUGH, LOOKED_THROUGH_LENT = 8 << 20, 64 << 20  # bytes of output, the second of commands with a secret
REMOVED = b"[the output of a command with a secret was too large to look through, and is not kept]\n"


async def shown_output(running: Running, caps: Caps) -> str:
    """The output so far, within the caps, whatever its size: only its two ends are read into memory."""
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


async def hide_kept(running: Running, place: Place, redact: Callable[[str], str]) -> None:
    """Take secrets out of what the place keeps of an ended command's output. One that is too large to look through is
    removed where the command was given a secret, and otherwise left as it is. Raises `PlaceFailed`."""
    size = await running.size()
    was_lent = LENT in running.command.text
    if size > (LOOKED_THROUGH_LENT if was_lent else LOOKED_THROUGH):
        if was_lent:
            await place.put(running.output_path, REMOVED, running.command.folder)
        return
    raw = await running.read(0, size)
    hidden = _hidden(raw, redact) if size <= SAMPLE else await asyncio.to_thread(_hidden, raw, redact)
    if hidden != raw:
        await place.put(running.output_path, hidden, running.command.folder)


def _hidden(raw: bytes, redact: Callable[[str], str]) -> bytes:
    return redact(raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape") if raw else raw
