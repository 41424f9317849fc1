"""The part of a prompt that is piped in."""

from __future__ import annotations

import os
import select
import stat
import sys

PATIENCE = 3.0
"""Seconds after which a pipe that brings nothing is spoken of: a forgotten one would look like a hang."""
LARGEST = 10 * 1024 * 1024


def piped_text(prompt: str) -> str:
    """What stands on standard input where that is a pipe or a file; empty for a terminal or /dev/null.

    Bytes that are no UTF-8 are shown as replacement characters; what is over 10 MiB is left out, visibly.
    """
    try:
        handle = sys.stdin.fileno()
        kind = os.fstat(handle).st_mode
    except (AttributeError, OSError, ValueError):
        return ""
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return ""
    if prompt and not stat.S_ISREG(kind) and not select.select([handle], [], [], PATIENCE)[0]:
        sys.stderr.write("Waiting for the rest of the prompt on standard input (`< /dev/null` if there is none).\n")
    content = sys.stdin.buffer.read(LARGEST + 1)
    text = content[:LARGEST].decode("utf-8", "replace")
    return f"{text}\n[cut: more than 10 MiB were piped in]" if len(content) > LARGEST else text
