"""Files as a working copy of the ledger, on both databases: whose a difference is, also after a kill at any step."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from hermes_agent.core.errors import HomeError
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.versions import Author, Change, Kind, Overtaken, VersionState
from hermes_agent.store.working_copy import AGAIN, WorkingCopy, again

ITEM = "lines"


def lines(content: bytes | None) -> list[str]:
    return (content or b"").decode().splitlines()


def joined(entries: list[str]) -> bytes:
    return "".join(f"{entry}\n" for entry in entries).encode()


def merged(base: bytes | None, ours: bytes | None, theirs: bytes | None) -> bytes | None:
    old, mine, other = lines(base), lines(ours), lines(theirs)
    stays = [each for each in other if each in mine or each not in old]
    return joined([*stays, *(each for each in mine if each not in old and each not in stays)])


def changed(before: bytes | None, after: bytes | None, author: Author = Author.FOREGROUND) -> Change:
    return Change(kind=Kind.MEMORY, item=ITEM, at=1.0, author=author, action="x", before=before, after=after)


class Killed(Exception):
    pass


@dataclass
class Copy:
    """One home with one file; `steps` are those after which it is killed."""

    store: Store
    folder: Path
    steps: int = 10**9
    copy: WorkingCopy = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.copy = WorkingCopy(self.store, Kind.MEMORY, self.folder / ".shown.json", merged)

    @property
    def content(self) -> bytes | None:
        path = self.folder / ITEM
        return path.read_bytes() if path.exists() else None

    def save(self, content: bytes | None) -> None:
        if content is not None:
            (self.folder / ITEM).write_bytes(content)

    def step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise Killed

    async def look(self) -> int:
        """Bring file and ledger in step; the version."""
        while True:
            found = self.content
            standing = await self.copy.compare(ITEM, found, partial(changed))
            self.step()
            self.save(standing.content)
            self.step()
            if kept := await self.copy.show({ITEM: standing}):
                self.step()
                return kept[ITEM].version

    async def add(self, entry: str) -> None:
        await self.change(lambda entries: [*entries, entry])

    async def change(self, made: Callable[[list[str]], list[str]]) -> None:
        """What an agent does."""
        while True:
            head, before = await self.look(), self.content
            after = joined(made(lines(before)))
            if after == before:
                return
            try:
                number = await self.copy.record(changed(before, after), VersionState.INTENDED, head)
            except Overtaken:
                continue
            self.step()
            self.save(after)
            self.step()
            await self.look()
            self.step()
            await self.copy.done(number)
            return


async def authors(store: Store) -> dict[str, Author]:
    """Who wrote each entry first."""
    found: dict[str, Author] = {}
    for version in reversed(await store.versions.list(Kind.MEMORY, ITEM, limit=10_000)):
        old = lines(version.change.before)
        for entry in lines(version.change.after):
            if entry not in old:
                found.setdefault(entry, version.change.author)
    return found


@dataclass
class World:
    """What three homes do, one after the other, some of them killed half-way."""

    chance: random.Random
    homes: list[Copy]
    wanted: dict[str, Author] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)

    async def turn(self, number: int, what: str) -> None:
        home, author = self.chance.choice(self.homes), Author.FOUND if what == "hand" else Author.FOREGROUND
        home.steps = self.chance.choice((10**9, self.chance.randrange(8)))
        entry = f"{what} {number}"
        match what:
            case "agent":
                self.wanted[entry] = author
                await home.add(entry)
                self.done.add(entry)
            case "hand":
                self.wanted[entry] = author
                home.save(joined([*lines(home.content), entry]))
                self.done.add(entry)
            case "remove" if there := [each for each in lines(home.content) if each not in self.gone]:
                entry = self.chance.choice(there)
                self.done.discard(entry)
                await home.change(lambda entries: [each for each in entries if each != entry])
                self.gone.add(entry)
            case _:
                await home.look()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("what", [("agent", "hand", "look"), ("agent", "agent", "remove", "look")])
async def test_whatever_is_killed_and_edited_nothing_is_lost_and_each_entry_has_its_author(
    database_url: str, tmp_path: Path, seed: int, what: tuple[str, ...]
):
    stores = [await open_store(database_url, machine=name) for name in "abc"]
    homes = [Copy(store, tmp_path / name) for store, name in zip(stores, "abc", strict=True)]
    world = World(random.Random(seed), homes)
    for number in range(80):
        with suppress(Killed):
            await world.turn(number, world.chance.choice(what))
    for home in [*homes, *homes, *homes]:
        home.steps = 10**9
        await home.look()

    found = lines(homes[0].content)
    assert homes[0].content == homes[1].content == homes[2].content
    assert len(set(found)) == len(found)
    assert world.done <= set(found)
    assert not world.gone & set(found)
    wrote = await authors(stores[0])
    assert wrote == {entry: world.wanted[entry] for entry in wrote}
    assert all(each.change.before != each.change.after for each in await stores[0].versions.list(limit=10_000))
    assert [await home.copy.behind() for home in homes] == [[], [], []]
    for store in stores:
        await store.close()


async def test_a_home_of_its_own_database_keeps_no_record_and_takes_back_what_it_never_wrote(
    database_url: str, tmp_path: Path
):
    store = await open_store(database_url)
    home = Copy(store, tmp_path / "a")
    await home.add("one")
    number = await home.copy.record(changed(b"one\n", b"never\n"), VersionState.INTENDED, await home.look())

    await home.look()

    version = await store.versions.get(number)
    assert version is not None
    assert (version.state, home.content) == (VersionState.DROPPED, b"one\n")
    assert await home.copy.behind() == []
    assert not (tmp_path / "a/.shown.json").exists()
    await store.close()


async def test_an_edit_that_comes_to_nothing_beside_what_another_home_made_is_none(database_url: str, tmp_path: Path):
    stores = [await open_store(database_url, machine=name) for name in "ab"]
    a, b = (Copy(store, tmp_path / name) for store, name in zip(stores, "ab", strict=True))
    await a.add("one")
    await a.add("two")
    await b.look()
    await a.add("three")
    b.save(b"two\none\n")

    await b.look()

    assert a.content == b.content == b"one\ntwo\nthree\n"
    assert len(await a.store.versions.list()) == 3
    for store in stores:
        await store.close()


async def test_an_edit_that_was_overtaken_is_kept_at_the_next_look(database_url: str, tmp_path: Path):
    stores = [await open_store(database_url, machine=name) for name in "ab"]
    a, b = (Copy(store, tmp_path / name) for store, name in zip(stores, "ab", strict=True))
    b.save(b"mine\n")
    standing = await b.copy.compare(ITEM, b.content, partial(changed))
    await a.add("one")

    assert await b.copy.show({ITEM: standing}) == {}
    await b.look()
    await a.look()

    assert a.content == b.content == b"one\nmine\n"
    assert await authors(a.store) == {"one": Author.FOREGROUND, "mine": Author.FOUND}
    for store in stores:
        await store.close()


async def test_a_home_without_a_record_goes_by_what_it_changed_last(database_url: str, tmp_path: Path):
    store = await open_store(database_url, machine="a")
    home = Copy(store, tmp_path / "a")
    await home.add("one")
    await home.add("two")
    (tmp_path / "a/.shown.json").unlink()
    home.save(b"two\n")

    await home.look()

    newest = await store.versions.latest(Kind.MEMORY, ITEM)
    assert newest is not None
    assert (newest.change.author, newest.change.before, newest.change.after) == (Author.FOUND, b"one\ntwo\n", b"two\n")
    await store.close()


async def test_two_changes_of_the_same_version_are_told_apart(store: Store):
    copy = WorkingCopy(store, Kind.MEMORY, Path("/nowhere"), merged)
    first = await copy.record(changed(None, b"a"), VersionState.DONE, 0)

    with pytest.raises(Overtaken, match="lines was changed meanwhile: nothing was written"):
        await copy.record(changed(None, b"b"), VersionState.DONE, 0)
    second = await copy.record(changed(b"a", b"c"), VersionState.INTENDED, first)
    version = await store.versions.get(second)
    assert version is not None
    assert await copy.drop(version)
    with pytest.raises(Overtaken):
        await copy.record(changed(b"c", b"d"), VersionState.DONE, second)
    third = await copy.record(changed(b"a", b"e"), VersionState.INTENDED, first)
    await copy.record(changed(b"e", b"f"), VersionState.DONE, third)
    version = await store.versions.get(third)
    assert version is not None
    assert not await copy.drop(version)


async def test_what_is_private_is_neither_shown_elsewhere_nor_in_the_way_of_anybody(database_url: str, tmp_path: Path):
    stores = [await open_store(database_url, machine=name) for name in "ab"]
    a, b = (Copy(store, tmp_path / name) for store, name in zip(stores, "ab", strict=True))
    mine = Change(
        kind=Kind.MEMORY, item=ITEM, at=1.0, author=Author.HUB, action="x", before=None, after=b"x", private=True
    )
    await a.copy.record(mine, VersionState.DONE, 0)

    standing = await a.copy.compare(ITEM, b"x", partial(changed), private=True)
    await a.copy.show({ITEM: standing})

    assert (standing.content, standing.private, standing.edit) == (b"x", True, None)
    assert await a.copy.behind() == await b.copy.behind() == []
    assert not (tmp_path / "a/.shown.json").exists()
    await b.look()
    assert b.content is None
    for store in stores:
        await store.close()


async def test_a_record_that_is_none_is_a_sentence(database_url: str, tmp_path: Path):
    store = await open_store(database_url, machine="a")
    home = Copy(store, tmp_path / "a")
    (tmp_path / "a/.shown.json").write_text("{")

    with pytest.raises(HomeError, match="move it out of the way"):
        await home.look()
    await store.close()


async def test_a_change_that_is_overtaken_without_end_says_so():
    tries = []

    @again
    async def overtaken() -> None:
        tries.append(1)
        raise Overtaken("x")

    with pytest.raises(Overtaken):
        await overtaken()
    assert len(tries) == AGAIN + 1
