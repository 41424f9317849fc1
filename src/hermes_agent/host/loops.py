"""A server's event loop, from its start to the order to end: uvloop where it is installed, else Python's own."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
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


@contextmanager
def told_to_end() -> Iterator[asyncio.Event]:
    """What is set when the process is asked to end: by Ctrl-C, or SIGTERM."""
    told = asyncio.Event()
    with heeding({signal.SIGINT: told.set, signal.SIGTERM: told.set}):
        yield told


@contextmanager
def heeding(signals: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """Have the loop call these when the process gets those signals."""
    loop = asyncio.get_running_loop()
    for number, heed in signals.items():
        loop.add_signal_handler(number, heed)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
