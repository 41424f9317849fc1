"""The tool `memory`."""

from pathlib import Path

import pytest

from hermes_agent.core.errors import BadArguments, HermesError, ToolError
from hermes_agent.core.messages import Origin
from hermes_agent.core.tool import Answer
from hermes_agent.memory.entries import Operation
from hermes_agent.memory.settings import MemorySettings, Person, Target
from hermes_agent.memory.tools import ConversationTools, MemoryTools, log, undo
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session
from hermes_agent.store.versions import Author, Change, Kind, VersionState
from hermes_agent.tools.schema import collect
from tests.memory.harness import AGENT, ME, MEMORY, OWNER, Call, notes_in, save
from tests.store.test_search import tell
from tests.tools.bench import Bench


def tools(folder: Path, store: Store, settings: MemorySettings | None = None) -> MemoryTools:
    notes = notes_in(folder, store, settings)
    return MemoryTools(open_notes=lambda: notes, is_owner=lambda key: key == "cli:ann")


def text_of(answer: Answer) -> str:
    return "".join(part.text for part in answer.parts)


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

    assert "1. The build is make." in text_of(await made.memory(Call(call="call_2"), "memory"))


async def test_a_duplicate_and_an_overflow_are_refused_with_the_entries(tmp_path: Path, store: Store):
    await begun(store, "cli:folder:x")
    made = tools(tmp_path, store, MemorySettings(memory_char_limit=100))
    await made.memory(Call(), "memory", "add", "First.")

    for call, content in (("call_2", "First."), ("call_3", "x" * 95)):
        with pytest.raises(ToolError) as refused:
            await made.memory(Call(call=call), "memory", "add", content)
        assert "1. First." in refused.value.quoted.text
        assert "6 of 100 characters" in refused.value.quoted.text


async def test_a_guest_neither_sees_nor_writes_the_owners_notes(tmp_path: Path, store: Store):
    await begun(store, "telegram:dm:7", "telegram:7")
    made = tools(tmp_path, store)
    await made.memory(Call(session="none"), "memory", "add", "Owner's own.")

    seen = text_of(await made.memory(Call(speaker="telegram:7", call="call_2"), "memory"))
    await made.memory(Call(speaker="telegram:7", call="call_3"), "memory", "add", "Guest's own.")

    assert "Owner" not in seen
    assert (tmp_path / "home/memories/MEMORY.md").read_text() == "Owner's own.\n"
    own = Person(key="telegram:7").item(Target.MEMORY)
    assert (tmp_path / "home/memories" / own).read_text() == "Guest's own.\n"


async def test_where_others_read_along_no_entry_is_shown(tmp_path: Path, store: Store):
    await begun(store, "telegram:group:7")
    made = tools(tmp_path, store)
    await made.memory(Call(), "memory", "add", "Owner's own.")

    seen = text_of(await made.memory(Call(call="call_2"), "memory"))
    with pytest.raises(ToolError) as refused:
        await made.memory(Call(call="call_3"), "memory", "add", "Owner's own.")

    assert "Owner's" not in seen + refused.value.quoted.text


async def test_where_several_spoke_nothing_is_written(tmp_path: Path, store: Store):
    await begun(store, "telegram:group:7")

    with pytest.raises(ToolError, match="Several people"):
        await tools(tmp_path, store).memory(Call(speaker=""), "memory", "add", "x")


async def test_a_run_that_goes_on_by_itself_is_the_sessions_own_persons(tmp_path: Path, store: Store):
    await begun(store, "cli:folder:x")

    await tools(tmp_path, store).memory(Call(speaker=""), "memory", "add", "x")

    assert (await store.versions.list(Kind.MEMORY))[0].change.principal == "cli:ann"


MINE = "cli:me"


def bench(store: Store, session: str = "here") -> Bench:
    return Bench(collect([ConversationTools(lambda: store)])[0], Path("/"), session)


@pytest.fixture
async def search(store: Store) -> Bench:
    await tell(store, "garden", "Tomatoes need sun", "and water", principal=MINE, at=1_683_500_000)
    await tell(store, "kitchen", "the kettle is red", principal=MINE, at=1_687_000_000)
    await tell(store, "here", "hello", principal=MINE)
    await tell(store, "hers", "my tomatoes are secret", principal="cli:ann")
    return bench(store)


async def test_a_query_finds_sessions_with_dates_and_numbers(search: Bench):
    found = await search("session_search", query="tomato")

    assert found.splitlines()[0].startswith("session garden, ")
    assert "#1 2023-05-07" in found or "#1 2023-05-08" in found
    assert "user: **Tomatoes** need sun" in found


async def test_what_it_says_is_the_word_of_a_tool(search: Bench):
    answer = await search.answer("session_search", {"query": "tomato"})

    assert [part.origin for part in answer.parts] == [Origin.TOOL]


@pytest.mark.parametrize("query", ["tomatoes secret", "secret", "hers", "?!"])
async def test_nobody_elses_conversations_are_found(search: Bench, query: str):
    assert "my tomatoes" not in await search("session_search", query=query)


@pytest.mark.parametrize("query", ["zucchini", "?!", "x" * 10_000])
async def test_where_nothing_is_found_the_latest_are_listed(search: Bench, query: str):
    found = await search("session_search", query=query)

    assert found.startswith("No message contains these words. The latest conversations:")
    assert "session garden" in found


async def test_a_session_is_read_from_its_beginning(search: Bench):
    page = await search("session_search", session="garden")

    assert page.splitlines()[1].endswith("user: Tomatoes need sun")
    assert page.splitlines()[2].endswith("user: and water")
    assert page.endswith("The end.")


async def test_a_long_session_is_read_in_pages(store: Store):
    await tell(store, "here", *(f"text {number} {'x' * 300}" for number in range(1, 101)), principal=MINE)
    recall = bench(store)

    page, numbers = await recall("session_search", session="here"), set()
    while "More follows: around=" in page:
        numbers |= {line.split()[0] for line in page.splitlines() if line.startswith("#")}
        page = await recall("session_search", session="here", around=int(page.rpartition("around=")[2].rstrip(".")))
    numbers |= {line.split()[0] for line in page.splitlines() if line.startswith("#")}

    assert numbers == {f"#{number}" for number in range(1, 101)}
    assert "(this conversation)" in page


async def test_a_long_message_is_shown_when_it_is_asked_for(store: Store):
    await tell(store, "here", "before", "x" * 5000, principal=MINE)

    assert "[3,500 characters more]" in await bench(store)("session_search", session="here")
    assert "x" * 5000 in await bench(store)("session_search", session="here", around=2)


async def test_a_number_after_the_end_shows_the_last_messages(search: Bench):
    assert "and water" in await search("session_search", session="garden", around=99)


async def test_a_session_without_messages_is_a_sentence(store: Store):
    await tell(store, "here", principal=MINE)

    assert (await bench(store)("session_search", session="here")).endswith("Nothing was said in it.")


async def test_without_anything_the_latest_are_listed_with_how_they_began(search: Bench):
    listed = await search("session_search", limit=2)

    assert listed.count("session ") == 2
    assert "#1" in listed


@pytest.mark.parametrize("session", ["hers", "nowhere"])
async def test_a_session_of_somebody_else_is_not_there(search: Bench, session: str):
    with pytest.raises(ToolError, match="No session"):
        await search("session_search", session=session)


async def test_who_does_not_own_the_session_sees_that_conversation_alone(search: Bench):
    answer = await search.answer("session_search", {"query": "tomatoes", "limit": 5}, session="hers")

    assert "need sun" not in answer.parts[0].text
    with pytest.raises(ToolError, match="No session of this conversation"):
        await search.answer("session_search", {"session": "garden"}, session="hers")


async def test_a_session_that_is_gone_leaves_what_its_speaker_said(search: Bench):
    answer = await search.answer("session_search", {"query": "tomatoes"}, session="gone")

    assert "**Tomatoes** need sun" in answer.parts[0].text


async def test_finding_and_reading_at_once_is_refused(search: Bench):
    with pytest.raises(BadArguments):
        await search("session_search", query="a", session="garden")


async def test_an_empty_log_is_a_sentence(store: Store):
    assert await bench(store)("session_search") == "There are no conversations yet."


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

    assert [(line.author, line.diff) for line in await log(notes)] == [("found", ("+mine",))]


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
