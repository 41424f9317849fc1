"""Sessions of the log in the editor: listed, loaded, resumed, copied, closed and deleted."""

import asyncio
import re
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from acp import RequestError

from hermes_agent.acp.sessions import PAGE
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.model_servers import openai_model, serving
from tests.acp.editor import Client, Json, Place, choosing, editor, near, opened
from tests.app.place import another, counting, settle_home, spoken

CHANNEL = "gateway:\n  channels:\n    telegram: {owners: ['7'], members: ['8']}\n"


async def test_a_session_of_the_terminal_is_listed_and_loaded_and_gone_on_with(tmp_path: Path):
    async with serving(openai_model(counting, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        async with another(home, server) as terminal:
            await terminal.say("From the terminal")
            await terminal.runtime.hermes.rename(terminal.record.id, "Tea")
            there = terminal.record
        async with near(home.root, Path(there.workspace)) as place:
            listed = await place.agent.list_sessions(cwd=there.workspace)
            elsewhere = await place.agent.list_sessions(cwd=str(tmp_path))
            await place.agent.load_session(cwd=there.workspace, session_id=there.id, mcp_servers=[])
            shown = place.client.text(there.id, "user_message_chunk"), place.client.text(there.id)
            await place.say(there.id, "From the editor")

    assert [(each.session_id, each.title) for each in listed.sessions] == [(there.id, "Tea")]
    assert not elsewhere.sessions
    assert shown == ("From the terminal", "Reply 1.")
    assert place.client.text(there.id) == "Reply 1.Reply 2."


async def test_sessions_of_others_are_not_listed(tmp_path: Path):
    async with serving(openai_model(counting, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url, CHANNEL)
        async with another(home, server) as terminal:
            await terminal.say("Mine")
            own, folder, listed = terminal.record, terminal.record.workspace, list[str]()
            for user, standing in (("7", Standing.OWNER), ("8", Standing.MEMBER)):
                who = Principal(platform="telegram", user=user, standing=standing)
                chat = Conversation(platform="telegram", chat=user)
                made = await terminal.runtime.hermes.open_session(chat, who, workspace=folder)
                listed.append(made.id)
        async with opened(home.root, Path(folder)) as place:
            shown = await place.agent.list_sessions()

    assert {each.session_id for each in shown.sessions} == {own.id, listed[0]}


async def test_what_was_undone_is_not_shown_again(tmp_path: Path):
    client = Client()
    async with editor(tmp_path, counting, client) as place:
        session = await place.begin()
        for words in ("One", "Two"):
            await place.say(session, words)
        await place.say(session, "/undo")
        await place.agent.close_session(session_id=session)
        client.updates.clear()
        await place.agent.load_session(cwd=str(place.work), session_id=session, mcp_servers=[])

    assert client.text(session, "user_message_chunk") == "One"
    assert client.text(session) == "Reply 1."


async def test_an_unknown_session_is_refused_with_a_sentence_and_nothing_is_broken(tmp_path: Path):
    async with editor(tmp_path, counting) as place:
        for name in ("20260101_000000_abcdef", "../../etc", ""):
            with pytest.raises(RequestError, match="There is no session") as caught:
                await place.agent.load_session(cwd=str(place.work), session_id=name, mcp_servers=[])
            assert caught.value.code == -32602
        with pytest.raises(RequestError, match="is not open here"):
            await place.say("20260101_000000_abcdef", "Hi")
        session = await place.begin()
        assert (await place.say(session, "Hi")).stop_reason == "end_turn"


async def test_folders_that_are_none_are_refused_with_a_sentence(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    wrong = {"work": "no whole path", str(tmp_path / "gone"): "does not exist", str(tmp_path / "file"): "is a file"}
    async with editor(tmp_path, counting) as place:
        for cwd, said in wrong.items():
            with pytest.raises(RequestError, match=said) as caught:
                await place.agent.new_session(cwd=cwd, mcp_servers=[])
            assert caught.value.code == -32602
        with pytest.raises(RequestError, match="no whole path"):
            await place.agent.new_session(cwd=str(place.work), mcp_servers=[], additional_directories=["near"])
        session = await place.begin()
        with pytest.raises(RequestError, match=f"works in {re.escape(str(place.work))}"):
            await place.agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])


async def test_other_folders_of_a_thread_are_its_own_and_the_model_is_told_of_them(tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()

    def script(heard: Heard) -> Json:
        name = f"{spoken(heard)}-{len(heard.messages)}.txt"
        return Say("Over.") if spoken(heard) else Call("write_file", {"path": str(other / name), "content": "tea"})

    client = Client(decide=choosing("deny"))
    async with editor(tmp_path, script, client) as place:
        own = (
            await place.agent.new_session(cwd=str(place.work), mcp_servers=[], additional_directories=[str(other)])
        ).session_id
        await place.say(own, "Write")
        written, asked = list(other.iterdir()), list(client.asked)
        told = str(other).encode() in place.server.exchanges[0].request.body
        await place.say(await place.begin(), "Write")

    assert (len(written), asked, told) == (1, [], True)
    assert len(client.asked) == 1
    assert client.text(own, "user_message_chunk") == ""
    assert list(other.iterdir()) == written


def reached(updates: list[Json]) -> str:
    return "".join(each.content.text for update in updates for each in update.content or () if each.type == "content")


@pytest.mark.parametrize("jail", ["bubblewrap", "landlock"])
async def test_commands_behind_the_wall_see_the_other_folders_of_their_thread(tmp_path: Path, jail: str):
    other = tmp_path / "other"
    (other / "made").mkdir(parents=True)
    (other / "tea.txt").write_text("green")
    command = f"cat {other}/tea.txt {other}/home/.env; echo tea > {other}/made/shell"
    calls = [
        Call("terminal", {"command": command}),
        Call("execute_code", {"code": f"open('{other}/made/code', 'w').write(open('{other}/tea.txt').read())"}),
    ]

    def script(heard: Heard) -> Json:
        answered = len([each for each in heard.messages if each.role == "tool"])
        return calls[answered] if answered < len(calls) else Say("Over.")

    (tmp_path / "work").mkdir()
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(other / "home", server.url, f"terminal: {{jail: {jail}}}\n")
        (home.root / ".env").write_text("KEY=secret-of-hermes")
        async with opened(home.root, tmp_path / "work", Client(), server) as place:
            given = {"cwd": str(place.work), "mcp_servers": []}
            own = (await place.agent.new_session(**given, additional_directories=[str(other)])).session_id
            await place.say(own, "Go")
            seen, made = reached(place.client.of(own, "tool_call_update")), sorted((other / "made").iterdir())
            for each in made:
                each.unlink()
            bare = await place.begin()
            await place.say(bare, "Go")
            hidden = reached(place.client.of(bare, "tool_call_update"))

    assert "green" in seen
    assert "secret-of-hermes" not in seen
    assert [each.name for each in made] == ["code", "shell"]
    assert "green" not in hidden
    assert not list((other / "made").iterdir())


def not_to_be_given(folder: Path) -> dict[str, str]:
    """Folders that no session may have, each also behind a link, and why."""
    wide = ["/", "/etc", "/tmp", "/home", f"{folder}/person", str(folder), f"{folder}/work/../person"]
    person = [f"person/{each}" for each in (".ssh", ".hermes", ".hermes/skills", ".hermes-other", ".aws")]
    closed = [f"{folder}/{each}" for each in (*person, "home", "home/skills")]
    for each in (*closed, f"{folder}/work"):
        Path(each).mkdir(parents=True, exist_ok=True)
    refused = dict.fromkeys(wide, "all of a home") | dict.fromkeys(closed, "is closed")
    for number, path in enumerate([*refused]):
        (link := folder / f"work/link{number}").symlink_to(path)
        refused[str(link)] = refused[path]
    return refused


async def opening(place: Place, folders: list[str], session: str = "") -> object:
    given = {"cwd": str(place.work), "mcp_servers": [], "additional_directories": folders}
    try:
        if session:
            return await place.agent.resume_session(**given, session_id=session)
        return await place.agent.new_session(**given)
    except RequestError as error:
        return error


async def test_folders_that_commands_may_not_have_are_no_other_folders_of_a_thread(tmp_path: Path):
    refused, work, client = not_to_be_given(tmp_path), tmp_path / "work", Client()
    async with serving(openai_model(counting, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url).root
        async with opened(home, work, client, server, HOME=f"{tmp_path}/person") as place:
            given = [[str(work), path] for path in refused]
            made = await asyncio.gather(*(opening(place, each) for each in given))
            session = await place.begin()
            made.append(await opening(place, given[-1], session))

    for (path, why), said in zip([*refused.items(), list(refused.items())[-1]], made, strict=True):
        assert isinstance(said, RequestError), path
        assert why in str(said)


async def test_a_closed_session_takes_no_prompt_until_it_is_resumed(tmp_path: Path):
    async with editor(tmp_path, counting) as place:
        session = await place.begin()
        await place.say(session, "One")
        await place.agent.close_session(session_id=session)
        with pytest.raises(RequestError, match=session):
            await place.say(session, "Two")
        await place.agent.resume_session(cwd=str(place.work), session_id=session, mcp_servers=[])
        replayed = len(place.client.of(session, "user_message_chunk"))
        await place.say(session, "Two")

    assert not replayed
    assert place.client.text(session).endswith("Reply 2.")


async def test_a_deleted_session_is_gone_and_a_copy_of_it_stays(tmp_path: Path):
    async with editor(tmp_path, counting) as place:
        session = await place.begin()
        await place.say(session, "One")
        copy = (await place.agent.fork_session(session_id=session, cwd=str(place.work), mcp_servers=[])).session_id
        await place.agent._conn.send_request("session/delete", {"sessionId": session})
        listed = [each.session_id for each in (await place.agent.list_sessions(cwd=str(place.work))).sessions]
        await place.say(copy, "Two")

    assert listed == [copy]
    assert place.client.text(copy) == "Reply 2."


async def test_the_list_comes_in_pages(tmp_path: Path):
    async with serving(openai_model(counting, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        work = tmp_path / "work"
        async with another(home, server) as terminal:
            for number in range(PAGE + 10):
                where = Conversation(platform="cli", chat_kind="name", chat=str(number))
                await terminal.runtime.hermes.open_session(where, terminal.runtime.owner, workspace=str(work))
        async with near(home.root, work) as place:
            first = await place.agent.list_sessions(cwd=str(work))
            second = await place.agent.list_sessions(cwd=str(work), cursor=first.next_cursor)

    names = [each.session_id for each in (*first.sessions, *second.sessions)]
    assert (len(first.sessions), len(names), len(set(names))) == (PAGE, PAGE + 11, PAGE + 11)
    assert second.next_cursor is None


async def test_a_load_during_a_run_attaches_to_it_and_a_cancel_works_after_it(tmp_path: Path):
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(editor(tmp_path, lambda _: Hang()))
        session = await place.begin()
        asking = asyncio.create_task(place.say(session, "Hi"))
        async with asyncio.timeout(10):
            while not place.server.exchanges:
                await asyncio.sleep(0.02)
        await place.agent.load_session(cwd=str(place.work), session_id=session, mcp_servers=[])
        again = asyncio.create_task(place.say(session, "And this"))
        await asyncio.sleep(0.1)
        await place.agent.cancel(session_id=session)
        ended = await asyncio.wait_for(again, 2)
        first = await asyncio.wait_for(asking, 2)

    assert (ended.stop_reason, first.stop_reason) == ("cancelled", "cancelled")
    assert len(place.server.exchanges) == 1


async def test_a_session_in_which_nothing_was_said_is_not_listed(tmp_path: Path):
    async with editor(tmp_path, counting) as place:
        await place.begin()
        said = await place.begin()
        await place.say(said, "Hi")
        listed = await place.agent.list_sessions(cwd=str(place.work))

    assert [each.session_id for each in listed.sessions] == [said]
