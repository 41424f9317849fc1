"""A store that cannot be written for a while: real refusals of SQLite."""

from __future__ import annotations

import asyncio

import apsw

from hermes_agent.store.database import Store


async def no_room(store: Store) -> None:
    """The disk is full: not one more page."""

    async def change(tx):
        (pages,) = await tx.row("PRAGMA page_count")
        (free,) = await tx.row("PRAGMA freelist_count")
        assert not free
        await tx.run(f"PRAGMA max_page_count = {pages}")

    await store.write(change)


async def room(store: Store) -> None:
    await store.write(lambda tx: tx.run("PRAGMA max_page_count = 1000000"))


WRITERS: dict[int, apsw.Connection] = {}


async def read_only(store: Store) -> None:
    """The database may be read and not written."""

    async def change(tx):
        WRITERS[id(store)] = tx._connection
        await tx.run("PRAGMA query_only = 1")

    await store.write(change)


async def writable(store: Store) -> None:
    """It may be written again; the store itself cannot say so, which it would have to write."""
    connection = WRITERS.pop(id(store))
    while True:
        try:
            connection.execute("PRAGMA query_only = 0")
        except apsw.ThreadingViolationError:  # It is being tried just now.
            await asyncio.sleep(0.01)
        else:
            return
