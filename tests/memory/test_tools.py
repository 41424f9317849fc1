"""The tool `memory`."""

from pathlib import Path

import pytest

from hermes_agent.core.errors import ToolError
from hermes_agent.memory.entries import Operation
from hermes_agent.memory.settings import MemorySettings
from hermes_agent.memory.tools import MemoryTools
from hermes_agent.memory.whose import Person, Target
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session
from hermes_agent.store.versions import Kind
from tests.memory.harness import Call, notes_in


def tools(folder: Path, store: Store, settings: MemorySettings | None = None) -> MemoryTools:
    notes = notes_in(folder, store, settings)
    return MemoryTools(open_notes=lambda: notes, is_owner=lambda key: key == "cli:ann")


async def begun(store: Store, conversation: str, principal: str = "cli:ann") -> None:
    session = Session(id="s1", principal=principal, conversation=conversation, surface="cli", created=1.0, updated=1.0)
    await store.write(lambda tx: store.sessions.create(tx, session))


async def test_a_note_is_saved_and_the_answer_tells_how_full_it_is(tmp_path: Path, store: Store):
    await begun(store, "cli:folder:x")

    said = await tools(tmp_path, store).memory(Call(), "user", "add", "Likes tea.")

    assert said.startswith("Noted (version 1). USER.md: 1 entries, 10 of 1,375 characters (0 %).")
    assert (tmp_path / "home/memories/USER.md").read_text() == "Likes tea.\n"


async def test_several_operations_are_one_change(tmp_path: Path, store: Store):
    await begun(store, "cli:folder:x")
    both = [Operation(action="add", content="a"), Operation(action="add", content="b")]

    await tools(tmp_path, store).memory(Call(), "memory", operations=both)

    assert len(await store.versions.list(Kind.MEMORY)) == 1


async def test_without_an_operation_the_notes_are_shown(tmp_path: Path, store: Store):
    await begun(store, "cli:folder:x")
    made = tools(tmp_path, store)
    await made.memory(Call(), "memory", "add", "The build is make.")

    assert "1. The build is make." in await made.memory(Call(call="call_2"), "memory")


async def test_a_duplicate_and_an_overflow_are_refused_with_the_entries(tmp_path: Path, store: Store):
    await begun(store, "cli:folder:x")
    made = tools(tmp_path, store, MemorySettings(memory_char_limit=100))
    await made.memory(Call(), "memory", "add", "First.")

    for call, content in (("call_2", "First."), ("call_3", "x" * 95)):
        with pytest.raises(ToolError) as refused:
            await made.memory(Call(call=call), "memory", "add", content)
        assert "1. First." in refused.value.hint
        assert "6 of 100 characters" in refused.value.hint


async def test_a_guest_neither_sees_nor_writes_the_owners_notes(tmp_path: Path, store: Store):
    await begun(store, "telegram:dm:7", "telegram:7")
    made = tools(tmp_path, store)
    await made.memory(Call(session="none"), "memory", "add", "Owner's own.")

    seen = await made.memory(Call(speaker="telegram:7", call="call_2"), "memory")
    await made.memory(Call(speaker="telegram:7", call="call_3"), "memory", "add", "Guest's own.")

    assert "Owner" not in seen
    assert (tmp_path / "home/memories/MEMORY.md").read_text() == "Owner's own.\n"
    own = Person(key="telegram:7").item(Target.MEMORY)
    assert (tmp_path / "home/memories" / own).read_text() == "Guest's own.\n"


async def test_where_others_read_along_no_entry_is_shown(tmp_path: Path, store: Store):
    await begun(store, "telegram:group:7")
    made = tools(tmp_path, store)
    await made.memory(Call(), "memory", "add", "Owner's own.")

    seen = await made.memory(Call(call="call_2"), "memory")
    with pytest.raises(ToolError) as refused:
        await made.memory(Call(call="call_3"), "memory", "add", "Owner's own.")

    assert "Owner's" not in seen + refused.value.hint


async def test_where_several_spoke_nothing_is_written(tmp_path: Path, store: Store):
    await begun(store, "telegram:group:7")

    with pytest.raises(ToolError, match="Several people"):
        await tools(tmp_path, store).memory(Call(speaker=""), "memory", "add", "x")


async def test_a_run_that_goes_on_by_itself_is_the_sessions_own_persons(tmp_path: Path, store: Store):
    await begun(store, "cli:folder:x")

    await tools(tmp_path, store).memory(Call(speaker=""), "memory", "add", "x")

    assert (await store.versions.list(Kind.MEMORY))[0].change.principal == "cli:ann"
