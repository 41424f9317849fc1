"""Notes of one household in several homes over one database: nobody's change is lost or booked to somebody else."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.memory.entries import Operation, entries_of, merged
from hermes_agent.memory.notes import Notes
from hermes_agent.memory.settings import MemorySettings
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.versions import Author, By, Change, Kind, VersionState
from hermes_agent.store.working_copy import AGAIN, Edit, Standing, WorkingCopy
from tests.memory.harness import MEMORY, OWNER, notes_in, save

ROOMY = MemorySettings(memory_char_limit=100_000)
NAMES = ("a", "b", "c")
Happens = Callable[[], Awaitable[object]]


@pytest.fixture
async def homes(database_url: str, tmp_path: Path) -> AsyncIterator[dict[str, Notes]]:
    """Three homes on one database."""
    stores = [await open_store(database_url, machine=name) for name in NAMES]
    yield {name: notes_in(tmp_path / name, store, ROOMY) for name, store in zip(NAMES, stores, strict=True)}
    for store in stores:
        await store.close()


def by(name: str) -> By:
    return By(author=Author.FOREGROUND, principal=name)


async def add(notes: Notes, text: str) -> None:
    await notes.change(OWNER, MEMORY, [Operation(action="add", content=text)], by(text.partition(" ")[0]))


async def history(store: Store) -> list[tuple[str, str]]:
    found = reversed(await store.versions.list(Kind.MEMORY, "MEMORY.md", limit=10_000))
    return [(each.change.author.value, each.change.principal) for each in found]


def text(notes: Notes) -> str:
    return notes.path("MEMORY.md").read_text()


async def test_what_one_home_notes_the_others_show_and_nobody_edited_anything(homes: dict[str, Notes]):
    a, b, c = homes.values()
    await add(a, "a 1")
    await add(a, "a 2")
    await add(b, "b 1")
    await add(a, "a 3")
    await c.catch_up()
    await b.catch_up()

    assert text(a) == text(b) == text(c) == "a 1\n§\na 2\n§\nb 1\n§\na 3\n"
    assert await history(a.store) == [("foreground", name) for name in ("a", "a", "b", "a")]
    assert [await each._files.behind() for each in homes.values()] == [[], [], []]


async def test_what_was_edited_by_hand_is_merged_with_what_the_others_changed(homes: dict[str, Notes]):
    a, b, _ = homes.values()
    await add(a, "a 1")
    await add(a, "a 2")
    await b.catch_up()
    await add(a, "a 3")
    save(b, "a 1\n§\nmine")

    await b.catch_up()
    await a.catch_up()

    assert text(a) == text(b) == "a 1\n§\na 3\n§\nmine\n"
    assert await history(a.store) == [*[("foreground", "a")] * 3, ("found", "")]
    assert (await a.writers("MEMORY.md"))["a 3"] is Author.FOREGROUND
    assert (await a.writers("MEMORY.md"))["mine"] is Author.FOUND


async def test_an_edit_back_to_what_this_home_wrote_last_is_an_edit(homes: dict[str, Notes]):
    a, b, _ = homes.values()
    await add(a, "a 1")
    await add(b, "b 1")
    await a.catch_up()
    save(a, "a 1\n")

    await a.catch_up()
    await a.notice(["MEMORY.md"])
    await b.catch_up()

    assert text(b) == "a 1\n"
    assert await history(a.store) == [("foreground", "a"), ("foreground", "b"), ("found", "")]


async def test_a_file_that_a_person_deletes_is_deleted_everywhere_but_for_what_came_since(homes: dict[str, Notes]):
    a, b, _ = homes.values()
    await add(a, "a 1")
    await b.catch_up()
    await add(a, "a 2")
    b.path("MEMORY.md").unlink()

    await b.notice(["MEMORY.md"])
    await a.catch_up()

    assert text(a) == text(b) == "a 2\n"


async def test_a_home_that_joins_brings_its_notes_along(homes: dict[str, Notes]):
    a, b, _ = homes.values()
    await add(a, "a 1")
    save(b, "brought\n")

    await b.catch_up()

    assert text(b) == "a 1\n§\nbrought\n"
    assert await history(a.store) == [("foreground", "a"), ("found", "")]


@pytest.mark.parametrize("written", [False, True])
async def test_a_change_that_another_home_has_under_way_is_left_to_it(homes: dict[str, Notes], written: bool):
    a, b, _ = homes.values()
    await add(a, "a 1")
    await b.catch_up()
    head = await a.store.versions.latest(Kind.MEMORY, "MEMORY.md")
    assert head is not None
    change = Change(
        kind=Kind.MEMORY,
        item="MEMORY.md",
        at=1.0,
        author=Author.FOREGROUND,
        action="add",
        before=b"a 1\n",
        after="a 1\n§\na 2\n".encode(),
        principal="a",
    )
    number = await a._files.record(change, VersionState.INTENDED, head.id)
    if written:
        save(a, "a 1\n§\na 2\n")

    await b.notice(["MEMORY.md"])
    version = await a.store.versions.get(number)
    assert version is not None
    assert version.state is VersionState.INTENDED
    await add(b, "b 1")
    await a.notice(["MEMORY.md"])

    assert text(a) == text(b) == "a 1\n§\na 2\n§\nb 1\n"
    assert await history(a.store) == [("foreground", "a"), ("foreground", "a"), ("foreground", "b")]


@pytest.mark.parametrize("hand", [False, True])
async def test_a_change_that_never_reached_its_file_is_written_and_counts_for_whoever_goes_on_with_the_run(
    homes: dict[str, Notes], hand: bool
):
    a, b, _ = homes.values()
    await add(a, "a 1")
    head = await a.store.versions.latest(Kind.MEMORY, "MEMORY.md")
    assert head is not None
    change = Change(
        kind=Kind.MEMORY,
        item="MEMORY.md",
        at=1.0,
        author=Author.FOREGROUND,
        action="add",
        before=b"a 1\n",
        after="a 1\n§\na 2\n".encode(),
        principal="a",
        key="call",
    )
    number = await a._files.record(change, VersionState.INTENDED, head.id)  # Here it was killed.
    if hand:
        save(a, "a 1\n§\nmine\n")

    taken_over = By(author=Author.FOREGROUND, principal="a", key="call")
    saved = await b.change(OWNER, MEMORY, [Operation(action="add", content="a 2")], taken_over)
    await a.catch_up()
    await b.catch_up()

    assert saved.version == number
    assert text(a) == text(b) == ("a 1\n§\na 2\n§\nmine\n" if hand else "a 1\n§\na 2\n")
    assert await history(a.store) == [("foreground", "a"), ("foreground", "a"), *([("found", "")] if hand else [])]


async def test_a_rendering_that_was_not_noted_down_is_nobodys_edit(homes: dict[str, Notes]):
    a, b, _ = homes.values()
    await add(a, "a 1")
    await b.catch_up()
    await add(a, "a 2")
    save(b, text(a))  # Rendered by a program that was killed right after.
    await add(a, "a 3")

    await b.catch_up()

    assert text(b) == text(a)
    assert await history(a.store) == [("foreground", "a")] * 3


async def test_what_a_promoted_standby_lost_is_put_back_as_whose_it_was(homes: dict[str, Notes]):
    a, b, _ = homes.values()
    await add(a, "a 1")
    await b.catch_up()
    await add(a, "a 2")
    lost = "DELETE FROM version WHERE id = (SELECT max(id) FROM version)"
    await a.store.write(lambda tx: tx.run(lost))

    await a.notice(["MEMORY.md"])
    await b.catch_up()

    assert text(a) == text(b) == "a 1\n§\na 2\n"
    assert await history(a.store) == [("foreground", "a"), ("foreground", "")]


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_they_do_every_entry_has_its_author(homes: dict[str, Notes], seed: int):
    chance, written = random.Random(seed), dict[str, Author]()
    for step in range(60):
        name = chance.choice(NAMES)
        notes = homes[name]
        match chance.choice(("agent", "hand", "look")):
            case "agent":
                await add(notes, f"{name} {step}")
                written[f"{name} {step}"] = Author.FOREGROUND
            case "hand":
                before = notes.path("MEMORY.md").read_text() if notes.path("MEMORY.md").exists() else ""
                save(notes, f"{before}§\nhand {step}\n")
                written[f"hand {step}"] = Author.FOUND
            case "look":
                await notes.catch_up()
    for notes in [*homes.values(), *homes.values()]:
        await notes.notice(["MEMORY.md"])

    assert len({text(notes) for notes in homes.values()}) == 1
    assert sorted(entries_of(text(homes["a"]))) == sorted(written)
    assert await homes["a"].writers("MEMORY.md") == written


async def nothing() -> None: ...


class Busy(WorkingCopy):
    """Where something happens behind each look, and behind each version that is kept."""

    def __init__(self, notes: Notes, looked: Happens = nothing, kept: Happens = nothing) -> None:
        super().__init__(notes.store, Kind.MEMORY, notes.home.memories / ".shown.json", merged)
        self._looked, self._kept = looked, kept

    async def compare(self, item: str, found: bytes | None, edit: Edit, *, private: bool = False) -> Standing:
        standing = await super().compare(item, found, edit, private=private)
        await self._looked()
        return standing

    async def record(self, change: Change, state: VersionState, follows: int) -> int:
        number = await super().record(change, state, follows)
        await self._kept()
        return number


def once(*moments: Callable[[], Awaitable[object]]) -> Happens:
    """One of these each time, then nothing more."""
    left = list(moments)

    async def happens() -> None:
        if left:
            await left.pop(0)()

    return happens


async def test_a_change_that_another_home_overtakes_is_made_on_top_of_its(homes: dict[str, Notes]):
    a, b, _ = homes.values()
    a._files = Busy(a, looked=once(lambda: add(b, "b 1")))

    await add(a, "a 1")

    assert text(a) == "b 1\n§\na 1\n"


async def test_an_edit_that_another_home_overtakes_is_kept_on_top_of_its(homes: dict[str, Notes]):
    a, b, _ = homes.values()
    await add(a, "a 1")
    await b.catch_up()
    save(a, "a 1\n§\nmine")
    a._files = Busy(a, looked=once(lambda: add(b, "b 1")))

    await a.notice(["MEMORY.md"])

    assert text(a) == "a 1\n§\nb 1\n§\nmine\n"
    assert (await a.writers("MEMORY.md"))["mine"] is Author.FOUND


async def test_what_a_person_saves_while_another_homes_change_comes_in_is_kept(homes: dict[str, Notes]):
    a, b, _ = homes.values()
    await add(b, "b 1")
    a._files = Busy(a, looked=once(lambda: saved(a, "mine")))

    await a.catch_up()

    assert text(a) == "b 1\n§\nmine\n"


async def test_a_file_that_is_saved_at_each_look_is_left_to_whoever_saves_it(homes: dict[str, Notes]):
    a, b, _ = homes.values()
    await add(b, "b 1")
    a._files = Busy(a, looked=once(*(partial(saved, a, f"mine {number}") for number in range(AGAIN))))

    with pytest.raises(HermesError, match="saved again and again by another program"):
        await a.catch_up()

    assert text(a) == f"mine {AGAIN - 1}"


async def test_a_change_that_another_home_has_built_upon_counts_though_a_person_saved_the_file_meanwhile(
    homes: dict[str, Notes],
):
    a, b, _ = homes.values()
    await add(a, "a 1")

    async def meanwhile() -> None:
        save(a, "a 1\n§\nmine")
        await add(b, "b 1")

    a._files = Busy(a, kept=once(meanwhile))

    await add(a, "a 2")
    await a.catch_up()

    assert sorted(entries_of(text(a))) == ["a 1", "a 2", "b 1", "mine"]


async def saved(notes: Notes, text: str) -> None:
    save(notes, text)
