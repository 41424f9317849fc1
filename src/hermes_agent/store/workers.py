"""Worker registry: heartbeats, detection of dead workers, and release of their lanes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from hermes_agent.core.clock import Clock, RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import DatabaseTooNew, LostLease, StoreError
from hermes_agent.core.events import VOCABULARY
from hermes_agent.host.process_table import this_boot
from hermes_agent.store.leases import Lease
from hermes_agent.store.transaction import Engine, Row, Transaction
from hermes_agent.version import VERSION

if TYPE_CHECKING:
    from hermes_agent.store.search import Index


REGISTER = (
    "INSERT INTO worker (id, key, started, seen, name, machine, version, words, queue, home) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $home) ON CONFLICT (id) DO UPDATE SET seen = excluded.seen"
)
ENTER_MACHINE = (
    "INSERT INTO machine (id, boot, since, seen) VALUES ($1, $2, $3, $3) "
    "ON CONFLICT (id) DO UPDATE SET boot = excluded.boot, seen = excluded.seen"
)
BEAT = "UPDATE worker SET seen = $2 WHERE id = $1"
PEERS = "SELECT id, key, seen FROM worker WHERE id <> $1"
CLAIMED = ("learning_job", "goal_round", "cron_instant")
"""The tables of `store.claims`."""
HELD = (*CLAIMED, "card")
"""The tables whose rows a worker holds until they end."""
BUSY_PEERS = (
    f"{PEERS} AND (EXISTS (SELECT 1 FROM lane WHERE lane.owner = worker.id) "
    + "".join(f"OR EXISTS (SELECT 1 FROM {each} WHERE owner = worker.id AND ended IS NULL) " for each in HELD)
    + "OR EXISTS (SELECT 1 FROM outbox WHERE outbox.owner = worker.id))"
)
LEAVE = "DELETE FROM worker WHERE id = $1"
STILL_SILENT = "SELECT 1 FROM worker WHERE id = $1 AND seen = $2 FOR NO KEY UPDATE"
# A run that does nothing but wait for a person is not what the program died of.
LET_WAITING_GO = "UPDATE lane SET owner = NULL WHERE owner = $1 AND waits = 1 RETURNING id"
FREE = (
    "UPDATE lane SET owner = NULL, crashes = crashes + 1, error = 'The worker died.', "
    "ready_at = CASE WHEN crashes + 1 < $2 THEN 0 ELSE CAST($3 AS DOUBLE PRECISION) END "
    "WHERE owner = $1 RETURNING id"
)
# It died without what was put aside before it began, and with nothing else that was there at an earlier death.
NOT_OF_THOSE = (
    "UPDATE lane SET crashes = 0, ready_at = CASE WHEN attempts = 0 THEN 0 ELSE ready_at END WHERE owner IS NULL "
    "AND crashes >= $2 AND ready_at <= $3 + (SELECT started FROM worker WHERE id = $1) "
    "AND home = (SELECT home FROM worker WHERE id = $1) AND NOT EXISTS (SELECT 1 FROM lane AS other "
    "WHERE other.owner = $1 AND other.pending > 0 AND other.crashes > 0 AND other.waits = 0)"
)
MACHINE = "SELECT name FROM worker WHERE id = $1"
MINE = "SELECT id, epoch FROM lane WHERE owner = $1"
LET_ALL_GO = "UPDATE lane SET owner = NULL WHERE owner = $1"
# What a worker had begun to send when it went may be there already.
LET_LETTERS_GO = (
    "UPDATE outbox SET owner = NULL, state = CASE state WHEN 'sending' THEN 'unsure' ELSE state END WHERE owner = $1"
)
LET_GO = "UPDATE lane SET owner = NULL WHERE id = $1 AND owner = $2 AND epoch = $3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Timeouts in seconds, and retry limits, of workers and lanes.

    A worker silent for `ttl` is declared dead; it gives up itself after half of that. `grace` is how long after a
    PostgreSQL server's start missing locks are ignored, `blink` how long a worker's lock there may be missing.
    `look` overrides how often dead workers are looked for, `sweep` is how often unattended lanes are. Mail that
    failed `attempts` times is refused. Mail in hand at `suspect` deaths is put aside for `crash_pause` (a death
    without it clears it), at `crashes` deaths until a person retries it. `busy` is how long a locked SQLite file
    is waited for; with `lasting` False nothing is synced to disk there, since the file is thrown away.
    """

    ttl: float = 30.0
    sweep: float = 5.0
    grace: float = 10.0
    blink: float = 0.25
    look: float | None = None
    attempts: int = 5
    crashes: int = 3
    suspect: int = 2
    crash_pause: float = 30.0
    busy: float = 30.0
    lasting: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The query for the database's last migration number, and the last one that this version knows."""

    sql: str
    newest: int


class Presence(Protocol):
    """Liveness and wake-up of one worker.

    - from `arrive` until `leave`, or the death of the process, others find it alive; `key` is a number of its own;
    - a wake-up after `arrive` ends the next `wait`, which returns whether there was one; one waiter at a time;
    - `now` is a clock that all workers of the database share;
    - `suspicious` is true where a death was noticed since the last call;
    - `check` is false while a missing sign of life proves nothing;
    - `dead` names the workers that are certainly gone; `buried` removes what one left behind.
    """

    look_seconds: float

    async def arrive(self, worker: str, key: int) -> None: ...

    async def leave(self) -> None: ...

    async def wait(self, seconds: float) -> bool: ...

    async def now(self) -> float: ...

    async def check(self) -> bool: ...

    def suspicious(self) -> bool: ...

    async def dead(self, workers: Collection[tuple[str, int]]) -> list[str]: ...

    async def buried(self, worker: str) -> None: ...


class Workers:
    """This process as a worker of its database; it registers on its first claim or wait. `serves` is the queue that it
    works on for everybody (empty: it has its own sessions alone), set before that."""

    def __init__(self, engine: Engine, presence: Presence, clock: Clock, timings: Timings, schema: Schema) -> None:
        self._engine = engine
        self._schema = schema
        self._presence = presence
        self._clock = clock
        self._timings = timings
        self._key = random.SystemRandom().getrandbits(62)
        self._arriving = asyncio.Lock()
        self._present = False
        self._beaten = clock.monotonic()
        self._looked = self._swept = self._compared = self._beaten
        self._idle: set[tuple[str, int]] = set()
        self._void = False
        self._rung = False
        self.id, self.machine = RandomIds().short(), this_boot().partition(" ")[0]
        self.generation, self.serves = 0, ""

    async def register(self) -> None:
        """Register this worker; repeated calls do nothing."""
        if self._present:
            return
        async with self._arriving:
            if not self._present:
                await self._presence.arrive(self.id, self._key)
                try:
                    await self._reap(PEERS)  # Also what left only its name; what is put aside then is older than this.
                    await self._enter()
                except BaseException:  # cancelled as well: nothing of it may stay
                    await self._presence.leave()
                    raise
                self._present = True

    async def wait(self, seconds: float) -> bool:
        """Wait for a wake-up: new mail, a stop, a dead worker. False on timeout."""
        await self.register()
        rung = await self._presence.wait(seconds)
        self._rung = self._rung or rung
        return rung

    def heard(self) -> bool:
        """Whether there was a wake-up since the last call."""
        rung, self._rung = self._rung, False
        return rung

    def alive(self, lease: Lease) -> None:
        """Raise `LostLease` where this process was suspended for so long that others may have declared it dead; call
        it right before an effect, since a suspended process cannot notice that."""
        self._notice_gap()
        if lease.generation != self.generation:
            raise LostLease(f"This process was stopped for too long; another worker may continue session {lease.lane}.")

    async def beat(self) -> None:
        """Send a heartbeat. Needed every few seconds while it works on lanes; `tend` does it."""
        self._notice_gap()
        started, now = self._clock.monotonic(), await self._presence.now()
        if not await self._engine.write(lambda tx: tx.run(BEAT, self.id, now), durable=False):
            self.generation += 1  # Given up by the others: what it held is theirs.
            await self._enter()
        self._beaten, self._void = started, False

    async def freshen(self) -> None:
        """Send a heartbeat before a lane is claimed, where one is due."""
        await self.register()
        if self._since(self._beaten) >= self._pace:
            await self.beat()

    def recheck(self) -> None:
        """Note that a claim was cancelled and may have been committed: the next `tend` releases what it left."""
        self._swept = -self._timings.ttl

    async def tend(self, running: Collection[str]) -> float:
        """Heartbeat, free the lanes of dead workers, release own lanes that are not in `running`; each when it is
        due.

        Call it before every claim. Returns the seconds until the next call. Raises `DatabaseTooNew`.
        """
        if self._rung or self._since(self._compared) >= self._pace:
            await self._compare()
        await (self.freshen() if running else self.register())
        if self._presence.suspicious() or self._since(self._looked) >= self._look_seconds:
            await self.reap()
        if self._since(self._swept) >= self._sweep_seconds(running):
            await self.sweep(running)
        next_look = self._look_seconds - self._since(self._looked)
        next_sweep = self._sweep_seconds(running) - self._since(self._swept)
        return max(0.0, min(next_look, next_sweep, self._pace if running else next_look))

    async def _compare(self) -> None:
        """Raise `DatabaseTooNew` where a later version has migrated the database under this process."""
        rows = await self._engine.read(lambda tx: tx.rows(self._schema.sql), brief=True)
        if rows[0][0] > self._schema.newest:
            raise DatabaseTooNew(
                f"A later version of Hermes has changed the database (its format is {rows[0][0]}, this process knows "
                f"{self._schema.newest}): it works no more. Start it again with that version; nothing is lost."
            )
        self._compared = self._clock.monotonic()

    async def reap(self) -> list[str]:
        """Free the lanes of workers that are dead or silent for longer than the TTL; returns the lanes."""
        await self.register()
        return await self._reap(BUSY_PEERS)

    async def _reap(self, whom: str) -> list[str]:
        self._looked = self._clock.monotonic()

        peers = {row[0]: (row[1], row[2]) for row in await self._engine.read(lambda tx: tx.rows(whom, self.id))}
        if not peers or not await self._presence.check():
            return []
        now = await self._presence.now()
        gone = set(await self._presence.dead([(worker, key) for worker, (key, _seen) in peers.items()]))
        silent = {worker for worker, (_key, seen) in peers.items() if seen < now - self._timings.ttl}
        freed: list[str] = []
        for worker in gone | silent:
            freed += await self._bury(worker, None if worker in gone else peers[worker][1])
        return freed

    async def reap_all(self) -> None:
        """The same for every worker, also one that holds nothing: afterwards only the living are registered."""
        await self.register()
        await self._reap(PEERS)

    async def sweep(self, running: Collection[str]) -> list[str]:
        """Release lanes that this worker owns without running them (an unanswered claim), at the second look."""
        self._swept = self._clock.monotonic()

        idle = {
            (row[0], row[1])
            for row in await self._engine.read(lambda tx: tx.rows(MINE, self.id))
            if row[0] not in running
        }
        lost, self._idle = idle & self._idle, idle

        async def change(tx: Transaction) -> list[str]:
            tx.rings.add("")
            return [lane for lane, epoch in sorted(lost) if await tx.run(LET_GO, lane, self.id, epoch)]

        return await self._engine.write(change) if lost else []

    async def leave(self) -> None:
        """Deregister at the end of the program."""
        if not self._present:
            return
        self._present = False

        async def change(tx: Transaction) -> None:
            if await tx.run(LET_ALL_GO, self.id) + await tx.run(LET_LETTERS_GO, self.id):
                tx.rings.add("")
            await tx.run(LEAVE, self.id)

        try:
            with suppress(StoreError):  # Where that cannot be written, the others notice the end by the presence.
                await self._engine.write(change, durable=False)
        finally:
            await self._presence.leave()

    @property
    def _look_seconds(self) -> float:
        return self._presence.look_seconds if self._timings.look is None else self._timings.look

    @property
    def _pace(self) -> float:
        return self._timings.ttl / 6

    def _sweep_seconds(self, running: Collection[str]) -> float:
        return self._timings.sweep if running or self._idle else self._timings.ttl

    def _since(self, moment: float) -> float:
        return self._clock.monotonic() - moment

    def _notice_gap(self) -> None:
        if not self._void and self._since(self._beaten) > self._timings.ttl / 2:
            self.generation += 1
            self._void = True

    async def _enter(self) -> None:
        started, now = self._clock.monotonic(), await self._presence.now()
        at, boot = self._clock.now(), this_boot()

        async def change(tx: Transaction) -> None:
            await tx.run(ENTER_MACHINE, self.machine, boot, at)
            await tx.run(REGISTER, self.id, self._key, at, now, boot, self.machine, VERSION, VOCABULARY, self.serves)

        await self._engine.write(change, durable=False)
        self._beaten, self._void = started, False

    async def _bury(self, worker: str, seen: float | None) -> list[str]:
        async def change(tx: Transaction) -> list[str]:
            if seen is not None and await tx.row(STILL_SILENT, worker, seen) is None:
                return []
            if await self._was_restarted(tx, worker):
                rows = await tx.rows(f"{LET_ALL_GO} RETURNING id", worker)
            else:
                rows = await self._freed(tx, worker)
            await tx.run(LET_LETTERS_GO, worker)
            await tx.run(LEAVE, worker)
            tx.rings.add("")
            return [row[0] for row in rows]

        freed = await self._engine.write(change)
        if seen is None:
            await self._presence.buried(worker)
        return freed

    async def _freed(self, tx: Transaction, worker: str) -> list[Row]:
        """Give the lanes of a dead worker back, and count that death against what it was working on."""
        await tx.run(NOT_OF_THOSE, worker, self._timings.suspect, self._timings.crash_pause)
        rows = await tx.rows(LET_WAITING_GO, worker)
        again = self._clock.now() + self._timings.crash_pause
        return rows + await tx.rows(FREE, worker, self._timings.suspect, again)

    async def _was_restarted(self, tx: Transaction, worker: str) -> bool:
        """Whether this machine was started again since that worker began here: it died of that."""
        row = await tx.row(MACHINE, worker)
        there, here = ("" if row is None else row[0]).split(), this_boot().split()
        return there[:1] == here[:1] and there != here


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """Parts that a dialect provides for one database: the engine, the workers' presence, the schema, the full-text
    index (created on first use), and a notice about the state in which it was found (empty: none)."""

    engine: Engine
    presence: Presence
    schema: Schema
    index: Callable[[], Index]
    notice: str = ""
