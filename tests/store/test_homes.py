"""Homes of one database: a second one is refused by name, unless both are of one household."""

import asyncio
from dataclasses import replace

import pytest

from hermes_agent.core.errors import DatabaseInUse
from hermes_agent.store.database import Store
from hermes_agent.store.homes import KnownHome
from hermes_agent.store.versions import Author, Change, Kind
from tests.databases import OpenAnother

ANN = KnownHome(id="a1", host="alpha", folder="/home/ann/.hermes", since=1_700_000_000.0)
BOB = KnownHome(id="b1", host="beta", folder="/root/.hermes", since=1_700_000_100.0)


async def test_a_home_comes_back(store: Store):
    for _ in range(2):
        await store.homes.enter(ANN, shared=False)

    assert await store.homes.list() == [ANN]


async def test_a_second_home_is_refused_by_name(store: Store):
    await store.homes.enter(ANN, shared=True)

    with pytest.raises(DatabaseInUse) as refused:
        await store.homes.enter(BOB, shared=False)

    assert str(refused.value).startswith(
        "The database of `store.url` is used by another home: /home/ann/.hermes on alpha (since 2023-11-"
    )
    assert "set `store.shared: true` in the config.yaml of each" in str(refused.value)
    assert await store.homes.list() == [ANN]


async def test_homes_of_one_household_share_it_and_each_has_to_say_so(store: Store):
    await store.homes.enter(ANN, shared=False)
    await store.homes.enter(BOB, shared=True)

    with pytest.raises(DatabaseInUse, match=r"/root/\.hermes on beta"):
        await store.homes.enter(ANN, shared=False)
    await store.homes.enter(ANN, shared=True)

    assert await store.homes.list() == [ANN, BOB]


async def test_a_home_that_moved_is_the_same_home(store: Store):
    await store.homes.enter(ANN, shared=False)
    moved = replace(ANN, host="gamma", folder="/srv/hermes")

    await store.homes.enter(moved, shared=False)

    assert await store.homes.list() == [moved]


async def test_of_two_that_come_at_once_one_is_refused(open_another: OpenAnother):
    stores = [await open_another() for _ in range(4)]
    homes = [replace(ANN, id=str(number)) for number in range(4)]

    tried = await asyncio.gather(
        *(store.homes.enter(home, shared=False) for store, home in zip(stores, homes, strict=True)),
        return_exceptions=True,
    )

    assert [type(each) for each in tried if each is not None] == [DatabaseInUse] * 3
    assert len(await stores[0].homes.list()) == 1


async def test_what_was_written_before_homes_had_names_is_the_first_ones(store: Store):
    change = Change(
        kind=Kind.MEMORY, item="MEMORY.md", at=1.0, author=Author.OWNER, action="edit", before=None, after=b"x"
    )
    await store.write(lambda tx: store.versions.record(tx, change))

    await store.homes.enter(ANN, shared=True)
    await store.homes.enter(BOB, shared=True)

    store.versions.machine = ANN.id
    assert await store.versions.latest(Kind.MEMORY, "MEMORY.md", mine=True) is not None
