"""The event loop of a server: uvloop where it is installed, which answers more requests a second, else Python's own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from importlib.util import find_spec
from typing import Any, TypeVar

from hermes_agent.host.late import late

T = TypeVar("T")
FAST = "uvloop"


def run(work: Coroutine[Any, Any, T], *, fast: str = FAST) -> T:
    """Run `work` to its end on a loop of its own, as `asyncio.run` does."""
    factory = late(f"{fast}:new_event_loop") if find_spec(fast) else None
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)
