"""What a model is shown of a command's output: all of it, or head and tail with the path of the whole."""

from __future__ import annotations

from hermes_agent.sandbox.place import Running
from hermes_agent.tools.excerpt import Caps, cleaned, head_and_tail, is_binary

SAMPLE = 8192


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
