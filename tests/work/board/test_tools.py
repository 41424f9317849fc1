"""The tools of the board, as a worker and as an agent in a conversation calls them."""

from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.app.tool_sources import FixedTools
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import ToolError
from hermes_agent.core.messages import Origin
from hermes_agent.store.work.cards import Status
from hermes_agent.work.board.board import Board
from hermes_agent.work.board.rules import By, Order, Role, Verb
from hermes_agent.work.board.tools import BoardTools
from tests.tools.bench import Bench
from tests.work.board.boards import ME, held, made, opened

AGENT = By(name="cli:me", role=Role.AGENT, sees_all=True)
READS = {"kanban_show", "kanban_list", "kanban_stats", "kanban_log"}
KEYED = {"kanban_create", "kanban_comment", "kanban_heartbeat"}


def bench(board: Board, by: By, folder: Path) -> Bench:
    @asynccontextmanager
    async def there():
        yield board

    tools = FixedTools([BoardTools(there, lambda _context: by)])
    assert not tools.quarantined
    return Bench(tuple(tools.tools("", ())), folder)


async def test_there_is_a_tool_for_each_verb_and_none_stands_in_every_prompt(tmp_path: Path):
    async with opened(tmp_path) as board:
        tools = bench(board, AGENT, tmp_path).tools
        verbs = "create show list update delete assign move comment block unblock start complete cancel archive stats"
        assert set(tools) == {f"kanban_{verb}" for verb in f"{verbs} heartbeat link attach fetch log".split()}
        for name, tool in tools.items():
            some = {"card": "x", "title": "x", "text": "x", "note": "x", "summary": "x", "why": "x", "status": "todo"}
            some |= {"assignee": "x", "parent": "x", "child": "x", "path": "x", "name": "x"}
            properties = tool.schema.parameters["properties"]
            effect = tool.facts({key: some[key] for key in some if key in properties}, "/work").effect
            assert effect is (Effect.READS if name in READS else Effect.KEYED if name in KEYED else Effect.WRITES)
            assert (Capability.SCHEDULE in tool.needs) == (name not in READS)
            assert not tool.core


async def test_a_worker_sees_reports_and_completes_its_card(tmp_path: Path):
    async with opened(tmp_path) as board:
        parent = await made(board, "Find the port", priority=0)
        await board.complete(ME, parent.id, "It is 7777.")
        card = await made(board, "Use it", body="Carefully.", parents=(parent.id,))
        await board.comment(ME, card.id, "Hurry.")
        by = await held(board, str(tmp_path))
        worker = bench(board, by, tmp_path)

        seen = await worker.answer("kanban_show", {})
        text = "".join(part.text for part in seen.parts)
        for word in ("Use it", "Carefully.", "Find the port", "Hurry.", "running"):
            assert word in text
        assert {part.origin for part in seen.parts if "Hurry" in part.text} == {Origin.OWNER}
        assert "It is 7777." in "".join(
            part.text for part in (await worker.answer("kanban_show", {"card": parent.id})).parts
        )
        assert await worker("kanban_heartbeat", note="half") == "Noted."
        (tmp_path / "out").write_text("o")
        assert "kept with the card" in await worker("kanban_attach", path="out")
        assert f"{card.id} is done." in await worker("kanban_complete", summary="Used.", artefacts=["out"])
        assert (await board.cards.get(card.id)).status is Status.DONE
        with pytest.raises(ToolError, match="not yours any more"):
            await worker("kanban_heartbeat", note="more")


async def test_a_worker_is_refused_what_is_not_its_own(tmp_path: Path):
    async with opened(tmp_path) as board:
        card, other = await made(board, priority=0), await made(board)
        worker = bench(board, await held(board), tmp_path)
        for name, said, why in (
            ("kanban_cancel", {"card": other.id}, "is not yours"),
            ("kanban_move", {"card": other.id, "status": "todo"}, "is not yours"),
            ("kanban_unblock", {"card": card.id}, "your own card"),
            ("kanban_assign", {"card": card.id, "assignee": "default"}, "your own card"),
            ("kanban_delete", {"card": other.id}, "is not yours"),
            ("kanban_show", {"card": "t_000000"}, "There is no card"),
            ("kanban_complete", {"summary": " "}, "Say in the summary"),
            ("kanban_list", {"status": "redy"}, "There is no status"),
        ):
            with pytest.raises(ToolError, match=why):
                await worker(name, **said)
        child = (await worker("kanban_create", title="More")).split()[0]
        assert "is cancelled" in await worker("kanban_cancel", card=child)


async def test_the_same_call_creates_one_card(tmp_path: Path):
    async with opened(tmp_path) as board:
        tool = bench(board, AGENT, tmp_path)
        context = tool.context()
        made_by = tool.tools["kanban_create"]
        for _ in range(2):
            await made_by.run({"title": "x"}, context)
        assert len(await board.cards.list_cards()) == 1


async def test_an_agent_in_a_conversation_has_the_rights_of_who_speaks(tmp_path: Path):
    async with opened(tmp_path) as board:
        owners = await made(board, hold=True)
        own = bench(board, AGENT, tmp_path)
        for name in ("kanban_complete", "kanban_heartbeat"):
            with pytest.raises(ToolError, match="works on"):
                await own(name, **({"summary": "x"} if name.endswith("complete") else {"note": "x"}))
        with pytest.raises(ToolError, match="only a person"):
            await own("kanban_unblock", card=owners.id)
        with pytest.raises(ToolError, match="Say which card"):
            await own("kanban_block", why="x")
        member = bench(board, replace(AGENT, name="telegram:2", sees_all=False), tmp_path)
        assert await member("kanban_list") == "There are no such cards."
        with pytest.raises(ToolError, match="There is no card"):
            await member("kanban_show", card=owners.id)
        with pytest.raises(ToolError, match="Only the owner"):
            await member("kanban_stats")
        with pytest.raises(ToolError, match="There is no card"):
            await member("kanban_cancel", card=owners.id)


async def test_cards_are_listed_changed_moved_linked_and_archived(tmp_path: Path):
    async with opened(tmp_path) as board:
        agent = bench(board, AGENT, tmp_path)
        first, second = [(await agent("kanban_create", title=name)).split()[0] for name in "ab"]
        assert "todo" in await agent("kanban_link", parent=first, child=second)
        assert "ready" in await agent("kanban_link", parent=first, child=second, remove=True)
        await agent("kanban_update", card=first, title="A", priority=0)
        assert (await agent("kanban_list")).splitlines()[0].startswith(f"{first} [ready] p0 A (default)")
        assert "triage" in await agent("kanban_move", card=first, status="triage")
        assert "ready" in await agent("kanban_start", card=first)
        assert await agent("kanban_comment", card=first, text="hi") == "Said."
        assert "main: 2 ready" in await agent("kanban_stats")
        assert "comment by cli:me: hi" in "".join(
            part.text for part in (await agent.answer("kanban_log", {"card": first, "after": 1})).parts
        )
        await agent("kanban_cancel", card=first)
        assert "archived" in await agent("kanban_archive", card=first)
        assert "is gone" in await agent("kanban_delete", card=second)
        await board.move(ME, (await made(board)).id, Order(verb=Verb.CANCEL))
