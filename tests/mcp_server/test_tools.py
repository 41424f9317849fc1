"""What programs do with Hermes over MCP: conversations, runs, questions, events, the board and jobs."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.board import create_card
from hermes_agent.app.operations.cron import create_job
from hermes_agent.core.chat import Conversation, Inbound
from hermes_agent.core.messages import Image, Origin, Text
from hermes_agent.mcp_server.tools import wait_of
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say
from tests.api.served import MEMBER_KEY, OTHER_KEY, Server
from tests.app.place import counting, spoken
from tests.mcp_server.clients import ERAS, client, connected, failed, names_of, said, told

PEER = {
    "conversations_list",
    "conversation_get",
    "messages_read",
    "attachments_fetch",
    "events_poll",
    "events_wait",
    "messages_send",
    "channels_list",
    "permissions_list_open",
    "permissions_respond",
}
ASKS = Call("clarify", {"question": "Which one?", "choices": ["a", "b"]})
SLOW = Answer(pieces=(Say("One two three four five six seven."),), pace=Pace(first=0.1, between=0.3, characters=4))
TELEGRAM = "gateway:\n  channels:\n    telegram:\n      home: '7'\n"


def asking(heard: Heard) -> Call | Say:
    """A model that asks once, then says what it heard last."""
    return ASKS if not spoken(heard) else Say("Thank you.")


def working(heard: Heard) -> Call | Say:
    """A model that uses a tool, then replies."""
    return Call("todo", {"todos": []}) if not spoken(heard) else Say("Done.")


@pytest.mark.parametrize("era", ERAS)
async def test_a_program_asks_and_reads_the_conversation(tmp_path: Path, era: str):
    async with connected(tmp_path, counting, era) as (_, mcp):
        names = await names_of(mcp)
        reply = await said(mcp, "ask", message="Hi")
        (session,) = await told(mcp, "conversations_list")
        again = await said(mcp, "ask", message="Hi again", session=session["id"])
        one = await told(mcp, "conversation_get", session=session["id"])
        messages = await told(mcp, "messages_read", session=session["id"])
        rest = await told(mcp, "messages_read", session=session["id"], after=messages["messages"][1]["number"], limit=1)

    assert names >= {*PEER, "ask", "session_search", "board_list", "jobs_list"}
    assert reply == f"Reply 1.\n[answered; session {session['id']}]"
    assert again.startswith("Reply 2.")
    assert one["id"] == session["id"]
    assert [each["text"] for each in messages["messages"]] == ["Hi", "Reply 1.", "Hi again", "Reply 2."]
    assert [each["text"] for each in rest["messages"]] == ["Hi again"]
    assert rest["next"] == messages["messages"][2]["number"]


@pytest.mark.parametrize("era", ERAS)
async def test_the_events_of_a_run_are_the_progress_of_the_call(tmp_path: Path, era: str):
    lines: list[str] = []

    async def show(done: float, total: float | None, message: str | None) -> None:
        lines.append(message or "")

    async with connected(tmp_path, working, era) as (_, mcp):
        await mcp.call_tool("ask", {"message": "Work"}, progress_callback=show)

    assert lines[0].startswith("session ")
    assert any(line.startswith("todo") for line in lines)


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_stops_its_run(tmp_path: Path, era: str):
    async with connected(tmp_path, lambda _: SLOW, era) as (server, mcp):
        call = asyncio.create_task(mcp.call_tool("ask", {"message": "Count"}))
        session = await running(server)
        call.cancel()
        async with asyncio.timeout(3):
            while server.runtime.hermes.runs(session):
                await asyncio.sleep(0.02)
        view = await server.runtime.hermes.view(session)

    assert not view.running


async def test_a_call_that_is_cancelled_before_its_run_gets_none(tmp_path: Path):
    async with connected(tmp_path, [SLOW, SLOW]) as (server, mcp):
        first = asyncio.create_task(mcp.call_tool("ask", {"message": "Count"}))
        session = await running(server)
        second = asyncio.create_task(mcp.call_tool("ask", {"message": "And again", "session": session}))
        async with asyncio.timeout(5):
            while not await server.runtime.store.inbox.has_other(session, 1):
                await asyncio.sleep(0.02)
        second.cancel()
        reply = (await first).content[0].text
        await server.runtime.hermes.idle()
        messages = await told(mcp, "messages_read", session=session)

    assert reply == "One two three four five six seven."
    assert [each["text"] for each in messages["messages"]] == ["Count", reply]


async def running(server: Server) -> str:
    """The session of the run that goes on."""
    async with asyncio.timeout(5):
        while True:
            records = await server.runtime.store.sessions.list(limit=1)
            if records and server.runtime.hermes.runs(records[0].id) and server.model.exchanges:
                return records[0].id
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_of_a_run_is_listed_and_answered_over_mcp(tmp_path: Path, era: str):
    async with connected(tmp_path, asking, era) as (_, mcp):
        reply = await said(mcp, "ask", message="Choose")
        (question,) = await told(mcp, "permissions_list_open")
        cursor = (await told(mcp, "events_poll"))["cursor"]
        answered = {"session": question["session"], "question": question["question"], "answer": "b"}
        await said(mcp, "permissions_respond", **answered)
        found = await told(mcp, "events_wait", cursor=cursor, session=question["session"], seconds=5)
        kinds = [each["kind"] for each in found["events"]]
        while "run_ended" not in kinds:
            found = await told(mcp, "events_wait", cursor=found["cursor"], seconds=5)
            kinds += [each["kind"] for each in found["events"]]
        late = await failed(mcp, "permissions_respond", **{**answered, "question": "none"})

    assert reply.startswith("Which one? (a, b)")
    assert "waiting" in reply
    assert (question["text"], question["choices"]) == ("Which one?", ["a", "b"])
    assert kinds[0] == "answered"
    assert "Nothing waits for that" in late


async def test_events_of_all_sessions_come_once_and_in_order(tmp_path: Path):
    async with connected(tmp_path, counting) as (server, mcp):
        await said(mcp, "ask", message="Before")
        cursor = (await told(mcp, "events_poll"))["cursor"]
        for word in ("One", "Two", "Three"):
            await said(mcp, "ask", message=word)
        seen = []
        for _ in range(30):
            found = await told(mcp, "events_poll", cursor=cursor, limit=2)
            cursor = found["cursor"]
            seen += found["events"]
        nothing = await told(mcp, "events_wait", cursor=cursor, seconds=0.1)
        bad = await failed(mcp, "events_poll", cursor="yesterday")

    texts = [each["text"] for each in seen if each["kind"] in ("message_taken", "replied")]
    assert texts == ["One", "Reply 1.", "Two", "Reply 1.", "Three", "Reply 1."]
    assert nothing["events"] == []
    assert "no cursor" in bad
    assert server.url


async def test_pictures_of_a_message_can_be_fetched(tmp_path: Path):
    data = base64.b64encode(b"\x89PNG picture").decode()
    async with connected(tmp_path, counting) as (server, mcp):
        owner = server.runtime.owner
        where = Conversation(platform="cli", chat_kind="folder", chat="here")
        inbound = Inbound(
            source="cli",
            source_id="1",
            principal=owner,
            conversation=where,
            parts=(Text(text="Look", origin=Origin.OWNER), Image(media_type="image/png", data=data)),
            received=0.0,
        )
        sent = await server.runtime.hermes.start_session(inbound, workspace=str(tmp_path))
        [_ async for _ in server.runtime.hermes.follow(sent.session, 0)]
        (look, _) = (await told(mcp, "messages_read", session=sent.session))["messages"]
        found = await mcp.call_tool("attachments_fetch", {"session": sent.session, "number": look["number"]})
        none = await failed(mcp, "attachments_fetch", session=sent.session, number=look["number"] + 1)

    assert look["attachments"] == ["image"]
    assert (found.content[0].type, found.content[0].data) == ("image", data)
    assert "no pictures or files" in none


async def test_the_owner_sends_to_a_chat_and_others_do_not(tmp_path: Path):
    async with connected(tmp_path, counting, more=TELEGRAM) as (server, mcp):
        channels = await told(mcp, "channels_list")
        clock = server.runtime.clock
        assert clock
        async with client(server.url, key=MEMBER_KEY) as anna:
            refused = await failed(anna, "messages_send", target="telegram", text="Hi")
            hidden = await failed(anna, "channels_list")
        nowhere = await failed(mcp, "messages_send", target="icq:7", text="Hi")

    assert channels == [{"name": "telegram", "enabled": False, "home": "7"}]
    assert "Only the owner" in refused
    assert "Only the owner" in hidden
    assert "names no chat" in nowhere


async def test_nobody_reaches_the_conversations_of_another_key(tmp_path: Path):
    async with connected(tmp_path, asking) as (server, owner):
        await said(owner, "ask", message="Secret")
        (question,) = await told(owner, "permissions_list_open")
        session, cursor = question["session"], (await told(owner, "events_poll"))["cursor"]
        moment = cursor.split()[0]
        answer = {"session": session, "question": question["question"], "answer": "a"}
        async with client(server.url, key=OTHER_KEY) as bert:
            lists = [
                await told(bert, "conversations_list"),
                await told(bert, "session_search", query="Secret"),
                await told(bert, "permissions_list_open"),
                (await told(bert, "events_poll", cursor=f"{moment} {session}:0"))["events"],
            ]
            refused = [
                await failed(bert, "conversation_get", session=session),
                await failed(bert, "messages_read", session=session),
                await failed(bert, "attachments_fetch", session=session, number=1),
                await failed(bert, "ask", message="Hi", session=session),
                await failed(bert, "permissions_respond", **answer),
                await failed(bert, "events_poll", cursor=moment, session=session),
            ]
            with pytest.raises(MCPError, match="There is no session"):
                await bert.read_resource(f"hermes://session/{session}")
            resources = (await bert.list_resources()).resources

    assert lists == [[], [], [], []]
    assert all("There is no session" in each for each in refused), refused
    assert not [each for each in resources if session in str(each.uri)]


async def test_cards_and_jobs_are_made_and_listed(tmp_path: Path):
    async with connected(tmp_path, counting) as (_, mcp):
        card = await said(mcp, "board_add", title="Paint the fence", priority=1)
        cards = await said(mcp, "board_list")
        job = await said(mcp, "jobs_add", schedule="every 2h", prompt="Look at the fence")
        jobs = await said(mcp, "jobs_list")
        wrong = await failed(mcp, "board_add", title="x", urgency=1)
        kind = await failed(mcp, "board_add", title="x", priority="high")
        less = await failed(mcp, "board_add")

    assert "Paint the fence" in cards
    assert card.split()[0] in cards
    assert "Look at the fence" in jobs
    assert job
    assert "There is no `urgency`" in wrong
    assert "`priority`" in kind
    assert "`title`" in less


async def test_what_a_program_says_is_not_the_owners_word(tmp_path: Path):
    async with connected(tmp_path, counting) as (server, mcp):
        await said(mcp, "ask", message="Remember that I like tea")
        (session,) = await told(mcp, "conversations_list")
        entries = await server.runtime.store.history.entries(session["id"])

    (taken,) = [each.event for each in entries if each.event.kind == "message_taken"]
    assert taken.principal == "api:owner"
    assert [part.origin for part in taken.message.parts if part.text.startswith("Remember")] == [Origin.MEMBER]


async def test_cards_and_jobs_of_a_program_are_not_the_owners_word(tmp_path: Path):
    async with connected(tmp_path, counting) as (server, mcp):
        store, access = server.runtime.store, Access(system=server.runtime, who=server.runtime.owner)
        mine = await create_card(access, "Paint the fence")
        card = (await said(mcp, "board_add", title="Burn the fence")).split()[0]
        await said(mcp, "board_update", card=mine.id, body="Burn it instead")
        await said(mcp, "board_comment", card=mine.id, text="Burn it")
        refused = await failed(mcp, "board_add", title="x", check="command:touch /tmp/x")
        job = await create_job(access, "every 2h", "Look at the fence", name="fence")
        await said(mcp, "jobs_add", schedule="every 3h", prompt="Burn the fence", name="fire")
        await said(mcp, "jobs_edit", job=job.id, prompt="Burn the fence")
        cards = [await store.boards.get(name) for name in (mine.id, card)]
        (comment,) = [each for each in await store.boards.events(mine.id) if each.kind == "comment"]
        authors = [each.plan.author for each in await store.cron_jobs.all()]

    assert [each.origin for each in (*cards, comment)] == [Origin.MEMBER] * 3
    assert "There is no check" in refused
    assert authors == ["member", "member"]


async def test_numbers_out_of_range_are_answered_like_others(tmp_path: Path):
    async with connected(tmp_path, counting) as (_, mcp):
        await said(mcp, "ask", message="Hello")
        (session,) = await told(mcp, "conversations_list")
        read = [await told(mcp, "messages_read", session=session["id"], after=each) for each in (10**30, -(10**30))]
        missing = await failed(mcp, "attachments_fetch", session=session["id"], number=10**30)
        moment = (await told(mcp, "events_poll"))["cursor"].split()[0]
        cursors = [f"{moment} {session['id']}:{'9' * size}" for size in (40, 5_000)]
        wrong = [await failed(mcp, "events_poll", cursor=each) for each in cursors]

    assert [len(each["messages"]) for each in read] == [0, 2]
    assert "has no pictures" in missing
    assert all("no cursor" in each for each in wrong)


@pytest.mark.parametrize(
    ("given", "wait"), [(5.0, 5.0), (1e9, 300.0), (-1.0, 0.0), (float("inf"), 300.0), (float("nan"), 0.0)]
)
def test_a_wait_is_bounded_whatever_the_seconds_are(given: float, wait: float):
    assert wait_of(given) == wait
