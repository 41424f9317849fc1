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
PATIENCE = 1.9
"""Seconds after the order in which a process that is asked to end has ended."""
ENDING = (signal.SIGTERM, signal.SIGHUP)
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
def told_to_end(patience: float = PATIENCE) -> Iterator[asyncio.Event]:
    """What is set when the process is asked to end: by Ctrl-C, or as `asked_to_end` says."""
    told = asyncio.Event()
    with heeding({signal.SIGINT: told.set}), asked_to_end(told.set, patience):
        yield told


@contextmanager
def asked_to_end(end: Callable[[], object], patience: float = PATIENCE) -> Iterator[None]:
    """Have `end` called when the process is asked to end: by SIGTERM, or by SIGHUP unless it was started to outlive its
    terminal. So many seconds later it has ended, as `ends_within` says (0: it may take its time)."""

    def on_signal() -> None:
        if patience:
            ends_within(patience)
        end()

    with heeding({number: on_signal for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN}):
        yield


def ends_within(seconds: float) -> None:
    """Have the kernel end this process so many seconds from now (0: not any more), whatever holds it up until then: a
    thread that waits for a lock, a disk that does not answer. What was committed is kept, the rest goes on later."""
    signal.setitimer(signal.ITIMER_REAL, seconds)


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
