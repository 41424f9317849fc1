"""A promoted standby: nobody is taken for dead, no log has a hole, no claim comes again under an old epoch."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hermes_agent.agent.journal import Journal
from hermes_agent.agent.session import Session
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import DatabaseUnreachable, LogBehind, StoreError
from hermes_agent.core.events import Notice
from hermes_agent.host.tasks import spawn
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.leases import Lease
from hermes_agent.store.workers import Timings
from tests.databases import NOT_INSTALLED
from tests.doubles.postgres import PostgresCluster, binaries
from tests.store.made import QUEUES, add, append, claimed, mail, session

GRACE = 1.5
LANE = "SELECT epoch, crashes, blamed FROM lane WHERE id = $1"
AGE = "SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())"


class Pair:
    """A server and its standby, behind one address that leads to the one or the other."""

    def __init__(self, folder: Path, closing: ExitStack) -> None:
        programs = binaries()
        if programs is None:
            pytest.skip(NOT_INSTALLED)
        self.primary = PostgresCluster(programs)
        closing.callback(self.primary.remove)
        self.primary.start()
        self.standby = self.primary.standby()
        closing.callback(self.standby.remove)
        self._address = folder / "current"
        self._address.symlink_to(self.primary.folder)
        self.url = f"postgresql://hermes@/postgres?host={self._address}"

    def follow(self) -> None:
        """Wait until the standby has everything."""
        place = self.primary.execute("SELECT pg_current_wal_lsn()")
        until = time.monotonic() + 20
        while self.standby.execute(f"SELECT pg_last_wal_replay_lsn() >= '{place}'") != "t":
            assert time.monotonic() < until

    def grow_old(self) -> None:
        """Wait until the standby's start is longer ago than the grace."""
        while float(self.standby.execute(AGE)) < GRACE:
            pass

    def promote(self) -> None:
        """The first server is gone, and the standby takes its place."""
        self.primary.stop()
        self._switch()
        self.standby.promote()

    def promote_late(self) -> None:
        """The same, of a standby that was stopped while more was committed."""
        self.primary.stop()
        self.standby.start()
        self._switch()
        self.standby.promote()

    def _switch(self) -> None:
        self._address.unlink()
        self._address.symlink_to(self.standby.folder)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with ExitStack() as closing:
        yield Pair(tmp_path, closing)


async def lane_of(store: Store, name: str) -> tuple[int, int, int]:
    row = await store.read(lambda tx: tx.row(LANE, name))
    assert row is not None
    return row


def journal_of(store: Store, lease: Lease) -> Journal:
    return Journal(store, lease, Session(id=lease.lane), clock=SystemClock(), show=lambda seen: None, spawn=spawn)


@pytest.mark.slow
async def test_nobody_is_freed_or_blamed_within_the_grace(pair: Pair):
    timings = Timings(grace=GRACE, blink=0.0)
    held_up = await open_store(pair.url, timings=timings)  # Its loop does not come to taking its lock again.
    lease = await claimed(held_up)
    await append(held_up, lease, 1)
    await asyncio.to_thread(pair.follow)
    await asyncio.to_thread(pair.grow_old)

    await asyncio.to_thread(pair.promote)
    newcomer = await open_store(pair.url, timings=timings)
    freed = await newcomer.workers.reap()

    assert freed == []
    assert await lane_of(newcomer, "s1") == (lease.epoch, 0, 0)
    await append(held_up, lease, 2)
    async with asyncio.timeout(20):
        while not (freed := await newcomer.workers.reap()):
            await asyncio.sleep(0.05)
    assert freed == ["s1"]
    await newcomer.close()
    await held_up.close()


@pytest.mark.slow
async def test_what_was_lost_is_put_back_or_named_and_no_log_has_a_hole(pair: Pair):
    store = await open_store(pair.url)
    journal = journal_of(store, await claimed(store))
    second = await claimed(store, "s2", 2)
    await append(store, second, 1)
    await add(store, session("s3"))
    await store.inbox.accept(mail(3), "s3", "main")
    for text in ("one", "two", "three"):
        await journal.commit(Notice(text=text))
    await asyncio.to_thread(pair.follow)
    await asyncio.to_thread(pair.standby.stop, "fast")
    for text in ("four", "five", "six"):
        await journal.commit(Notice(text=text))
    await append(store, second, 2, 3)
    third = await store.lanes.claim(QUEUES, "s3")
    assert third is not None

    await asyncio.to_thread(pair.promote_late)
    await journal.commit(Notice(text="seven"))

    texts = [(each.number, each.event.text) for each in await store.history.entries("s1")]
    assert texts[:7] == list(enumerate(("one", "two", "three", "four", "five", "six", "seven"), 1))
    assert texts[7:] == [(8, "The database had lost the log from entry 4 on; what this run wrote was put back.")]
    with pytest.raises(LogBehind, match="ends at 1"):
        await append(store, second, 4)
    assert [each.number for each in await store.history.entries("s2")] == [1]
    with pytest.raises(LogBehind, match="its claim is gone"):
        await append(store, third, 1)
    other = await open_store(pair.url)
    again = await other.lanes.claim(QUEUES, "s3")
    assert again is not None
    assert again.epoch > third.epoch
    assert (await lane_of(other, "s3"))[0] == again.epoch
    with pytest.raises(StoreError):
        await append(store, third, 1)
    await append(other, again, 1)
    await other.close()
    await store.close()


@pytest.mark.slow
async def test_a_standby_is_refused_with_a_sentence_and_passed_over_where_the_primary_is_named_too(pair: Pair):
    await (await open_store(pair.url)).close()
    await asyncio.to_thread(pair.follow)

    with pytest.raises(DatabaseUnreachable, match="standby, which takes no changes"):
        await open_store(pair.standby.url)
    hosts = f"{pair.standby.folder},{pair.primary.folder}"
    store = await open_store(f"postgresql://hermes@/postgres?host={hosts}&target_session_attrs=read-write")
    await store.workers.register()
    await store.close()
