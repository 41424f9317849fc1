"""The ledger as people read it."""

from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.memory.entries import Operation
from hermes_agent.memory.log import log, undo
from hermes_agent.memory.settings import Person, Target
from hermes_agent.store.database import Store
from hermes_agent.store.versions import Author, Change, Kind, VersionState
from tests.memory.harness import AGENT, ME, MEMORY, OWNER, notes_in, save


def add(content: str) -> list[Operation]:
    return [Operation(action="add", content=content)]


async def test_each_change_is_told_with_what_came_and_went(tmp_path: Path, store: Store):
    notes = notes_in(tmp_path, store)
    await notes.change(OWNER, MEMORY, add("one"), AGENT)
    await notes.change(OWNER, MEMORY, [Operation(action="replace", old_text="one", content="1")], AGENT)

    newest, oldest = await log(notes)

    assert newest.diff == ("-one", "+1")
    assert (oldest.diff, oldest.author, oldest.session, oldest.last) == (("+one",), "foreground", "s1", 2)


async def test_what_was_edited_by_hand_is_in_the_log_when_it_is_read(tmp_path: Path, store: Store):
    notes = notes_in(tmp_path, store)
    save(notes, "mine\n")

    assert [(line.author, line.diff) for line in await log(notes)] == [("owner", ("+mine",))]


async def test_undo_takes_back_the_last_then_the_one_before(tmp_path: Path, store: Store):
    notes = notes_in(tmp_path, store)
    for text in ("one", "two"):
        await notes.change(OWNER, MEMORY, add(text), AGENT)

    await undo(notes, None, ME)
    assert await notes.read(OWNER, MEMORY) == ("one",)
    await undo(notes, None, ME)

    assert await notes.read(OWNER, MEMORY) == ()
    with pytest.raises(HermesError, match="nothing to undo"):
        await undo(notes, None, ME)


async def test_a_change_is_taken_back_once(tmp_path: Path, store: Store):
    notes = notes_in(tmp_path, store)
    saved = await notes.change(OWNER, MEMORY, add("one"), AGENT)
    await undo(notes, saved.version, ME)

    with pytest.raises(HermesError, match="undone already"):
        await undo(notes, saved.version, ME)


async def test_only_notes_of_the_files_named_can_be_taken_back(tmp_path: Path, store: Store):
    notes, guest = notes_in(tmp_path, store), Person(key="tg:1")
    saved = await notes.change(OWNER, MEMORY, add("one"), AGENT)
    skill = Change(kind=Kind.SKILL, item="x", at=1.0, author=Author.HUB, action="add", before=None, after=b"")
    number = await store.write(lambda tx: store.versions.record(tx, skill, VersionState.DONE))

    with pytest.raises(HermesError, match="no version"):
        await undo(notes, saved.version, ME, [guest.item(target) for target in Target])
    with pytest.raises(HermesError, match="no version"):
        await undo(notes, number, ME)
