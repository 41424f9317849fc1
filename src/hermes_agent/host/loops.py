"""A server's event loop, from its start to the order to end: uvloop where it is installed, else Python's own."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TypeVar

from hermes_agent.host.late import late

T = TypeVar("T")
FAST = "uvloop"
SETTLED_SECONDS = 3.0
"""When a server has made nearly everything that stays until its end."""


def run(work: Coroutine[Any, Any, T], *, fast: str = FAST, settled: float = SETTLED_SECONDS) -> T:
    """Run `work` to its end on a loop of its own, as `asyncio.run` does; after `settled` seconds it has its objects."""
    factory = late(f"{fast}:new_event_loop") if find_spec(fast) else None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.get_loop().call_later(settled, _settle)
        return runner.run(work)


def _settle() -> None:
    """Have no later collection look at what stays: a full one would hold the loop for 50 ms and more."""
    gc.collect()
    gc.freeze()


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
