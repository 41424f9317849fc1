"""Health of the process: which parts make no progress, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import RunStarted, Seen
from hermes_agent.host.tasks import spawn
from hermes_agent.runs.event_bus import EventBus
from hermes_agent.store.database import Store
from hermes_agent.store.transaction import Transaction

PATIENCE = 5.0
"""Seconds in which a thread is free, and the database answers."""
OVERDUE = 10.0
"""Seconds in which a run ends that was stopped, or whose deadline passed."""
BEAT, HELD = 1.0, 2.0
"""Seconds between two beats of the event loop while runs go on, and how late one may come."""
MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ailment:
    """A part that makes no progress: `text` for everybody, `detail` for the owner. `stands` is for how many seconds
    it has been stuck; 0 where a restart would not help."""

    text: str
    detail: str = ""
    stands: float = 0.0


class Probe:
    """Runs a check, one at a time: while one is unanswered no second one starts."""

    def __init__(self, ask: Callable[[], Awaitable[object]]) -> None:
        self._ask = ask
        self._since = 0.0
        self._asking: asyncio.Task[None] | None = None
        self.failure = ""

    async def outstanding(self, patience: float) -> float:
        """Seconds for which the check has not answered, after waiting `patience`; 0 where it answered."""
        loop = asyncio.get_running_loop()
        if self._asking is None or self._asking.done():
            self._since = loop.time()
            self._asking = spawn(self._answered(), name="health")
        await asyncio.wait((self._asking,), timeout=patience)
        return 0.0 if self._asking.done() else loop.time() - self._since

    async def _answered(self) -> None:
        self.failure = ""
        try:
            await self._ask()
        except HermesError as error:
            self.failure = str(error)

    def close(self) -> None:
        """Cancel the check."""
        if self._asking is not None:
            self._asking.cancel()


class Health:
    """Reports the health of the process on request. Between requests it measures the event loop's lag, only while
    runs go on. `overdue` gives for each run by how many seconds it passed its deadline."""

    def __init__(self, store: Store, bus: EventBus, overdue: Callable[[], Sequence[float]]) -> None:
        self._bus = bus
        self._overdue = overdue
        self._hears = False
        self._pool = Probe(lambda: asyncio.to_thread(nothing))
        self._writer = Probe(lambda: store.write(no_change, durable=False))
        self._beating: asyncio.Task[None] | None = None
        self._held = (0.0, 0.0)

    async def ailments(self, patience: float = PATIENCE) -> list[Ailment]:
        """The parts that make no progress; empty where all is well."""
        if not self._hears:
            self._bus.overhear(self._notice)
            self._hears = True
            self._begin()
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(probe.outstanding(patience)) for probe in (self._pool, self._writer)]
        pool, writer = (each.result() for each in asked)
        found: list[Ailment] = []
        if pool:
            found.append(Ailment(text=f"No thread has been free for {pool:.0f} s: files cannot be read.", stands=pool))
        if writer:
            found.append(Ailment(text=f"The database has not answered for {writer:.0f} s.", stands=writer))
        if self._writer.failure:
            found.append(Ailment(text="The database cannot be written.", detail=self._writer.failure))
        late, at = self._held
        if late and (ago := asyncio.get_running_loop().time() - at) < MINUTE:
            found.append(
                Ailment(text=f"The event loop was blocked for {late:.1f} s, {ago:.0f} s ago: everything waited.")
            )
        if over := [seconds for seconds in self._overdue() if seconds > OVERDUE]:
            text = f"A run is still active {max(over):.0f} s after its stop or deadline ({len(over)} in all)."
            found.append(Ailment(text=text, stands=max(over)))
        return found

    def close(self) -> None:
        """Stop measuring."""
        self._pool.close()
        self._writer.close()
        if self._beating is not None:
            self._beating.cancel()

    def _notice(self, seen: Seen) -> None:
        if isinstance(seen.event, RunStarted):
            self._begin()

    def _begin(self) -> None:
        if self._beating is None or self._beating.done():
            self._beating = spawn(self._beat(), name="health: the loop's beat")

    async def _beat(self) -> None:
        """Look how late the loop is, as long as runs go on."""
        loop = asyncio.get_running_loop()
        while self._overdue():
            due = loop.time() + BEAT
            await asyncio.sleep(BEAT)
            if loop.time() - due > HELD:
                self._held = loop.time() - due, loop.time()


def nothing() -> None:
    """The check of the thread pool: a free thread runs it at once."""


async def no_change(_: Transaction) -> None:
    """The check of the database: a healthy one commits it at once."""
