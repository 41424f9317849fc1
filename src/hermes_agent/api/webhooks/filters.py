"""Filters of a route: patterns of the owner over words from outside, which cannot hold anything still."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from hermes_agent.api.webhooks.filling import field_of
from hermes_agent.host.inbound.message import Refused
from hermes_agent.host.process import open_piped

LONGEST = 1_000
"""Characters of a field that a filter looks at."""
WORK_SECONDS = 1
WAIT_SECONDS = 10.0
"""Seconds of work for the filters of one request, and until it is over also where the machine does other things."""
REPEATS = re.compile(r"[*+?{]")
SCRIPT = """
import json, re, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2)
print(all(re.fullmatch(pattern, text) for pattern, text in json.load(sys.stdin)))
"""


async def passes(
    payload: Any,  # noqa: ANN401  the payload as it came
    filters: Mapping[str, str],
    patience: float = WAIT_SECONDS,
) -> bool:
    """Whether every field that a filter names matches its pattern as a whole. Raises `Refused`."""
    slow: list[tuple[str, str]] = []
    for name, pattern in filters.items():
        text = field_of(payload, name)[:LONGEST]
        if not _is_quick(pattern):
            slow.append((pattern, text))
        elif re.fullmatch(pattern, text) is None:
            return False
    return not slow or await _apart(slow, patience)


def _is_quick(pattern: str) -> bool:
    """Whether no text takes it long: with two repeats, or a choice within one, the time may grow without end."""
    repeats = len(REPEATS.findall(pattern))
    return repeats == 0 or (repeats == 1 and "|" not in pattern)


async def _apart(slow: list[tuple[str, str]], patience: float) -> bool:
    """The same in a process of its own, which has a limit."""
    argv = [sys.executable, "-I", "-S", "-c", SCRIPT, str(WORK_SECONDS)]
    running = await open_piped(argv, env={}, data=json.dumps(slow).encode())
    try:
        async with asyncio.timeout(patience):
            out, _, code = await running.collect(len("False\n"))
    except TimeoutError:
        code = 1
    finally:
        await running.close()
    if code:
        words = f"A filter of the route takes more than {WORK_SECONDS} s for this payload: write it with fewer repeats."
        raise Refused(503, words, code="slow_filter")
    return out == b"True\n"
