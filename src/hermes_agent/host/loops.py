"""Runs an event loop, with uvloop where installed, and handles the signals that ask the process to end."""

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
COLLECTED = 20_000
"""New objects between two looks for garbage after the start: one look at so many holds the loop for about 1 ms."""


def run(work: Coroutine[Any, Any, T], *, fast: str = FAST, settled: float = SETTLED_SECONDS) -> T:
    """Run `work` to its end on a new event loop, as `asyncio.run` does. After `settled` seconds the objects of the
    start are excluded from garbage collection."""
    factory = late(f"{fast}:new_event_loop") if find_spec(fast) else None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.get_loop().call_later(settled, _settle)
        return runner.run(work)


def _settle() -> None:
    """Have no later collection look at what stays: a full one would hold the loop for 50 ms and more. A start
    sets looks far apart; from now on each is short."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED, 20, 20)


@contextmanager
def told_to_end(patience: float = PATIENCE) -> Iterator[asyncio.Event]:
    """An event that is set when the process is asked to end: by Ctrl-C, or as `asked_to_end` says."""
    told = asyncio.Event()
    with heeding({signal.SIGINT: told.set}), asked_to_end(told.set, patience):
        yield told


@contextmanager
def asked_to_end(end: Callable[[], object], patience: float = PATIENCE) -> Iterator[None]:
    """Call `end` when the process is asked to end: by SIGTERM, or by SIGHUP unless it was started to outlive its
    terminal. After `patience` seconds the process is ended, as `ends_within` says (0: no limit)."""

    def on_signal() -> None:
        if patience:
            ends_within(patience)
        end()

    with heeding({number: on_signal for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN}):
        yield


def ends_within(seconds: float) -> None:
    """Have the kernel end this process in so many seconds (0: cancel that), whatever blocks it by then: a thread
    that waits for a lock, a disk that does not answer. Committed work is kept, the rest resumes later."""
    signal.setitimer(signal.ITIMER_REAL, seconds)


@contextmanager
def heeding(signals: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """Call these functions in the event loop on those signals."""
    loop = asyncio.get_running_loop()
    for number, heed in signals.items():
        loop.add_signal_handler(number, heed)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
