"""What a server offers is asked again where it may have changed, also by several at once; nothing is left over."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from hermes_agent.host.tasks import spawn
from tests.app.mcp.calling import MODERN, Calling, calling, plain


async def test_a_server_whose_names_changed_without_a_word_is_asked_again_once_a_call_fails(tmp_path: Path):
    async with calling(tmp_path, {"new": plain(MODERN)}) as call:
        await call("mcp__new__swap")
        assert await call("mcp__new__add", a=2, b=3) == "Unknown tool: add"
        async with asyncio.timeout(10):
            while "mcp__new__plus" not in call.tools():
                await asyncio.sleep(0.01)

        assert await call("mcp__new__plus", a=2, b=3) == "5"
        assert "mcp__new__add" not in call.tools()


async def ended(call: Calling, server: str) -> None:
    async with asyncio.timeout(10):
        while call.processes(server):
            await asyncio.sleep(0.02)


async def test_sessions_whose_connections_ended_leave_nothing_behind(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain(per_session=True, idle=0.2)}, look=False) as call:
        for number in range(5):
            await call("mcp_resource", call.context(session=f"s{number}"), action="list", server="fix")
            await ended(call, "fix")

        assert len(call.source.servers._places) <= 2


async def test_a_connection_that_is_asked_twice_what_it_offers_answers_both_alike(tmp_path: Path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/hostile.json").write_text(json.dumps(["no tool", {"name": "no_schema"}]))
    async with calling(tmp_path, {"fix": plain(env={"HOSTILE": "hostile.json"})}) as call:
        servers = call.source.servers
        async with servers.using(servers.servers["fix"], str(call.workspace)) as connection:
            found = [spawn(connection.listing(), name="a listing") for _ in range(20)]
            await asyncio.wait(found)

    assert {len([tool for tool in each.result().tools if tool.why]) for each in found} == {2}


async def test_who_lists_the_same_as_before_writes_over_what_another_process_listed_meanwhile(tmp_path: Path):
    servers, listed = {"fix": plain(env={"HOSTILE": "listed.json"})}, tmp_path / "work/listed.json"
    (tmp_path / "work").mkdir()
    listed.write_text("[]")
    async with calling(tmp_path, servers) as one, calling(tmp_path, servers, look=False) as other:
        for call, names in ((other, ["new"]), (one, [])):
            listed.write_text(json.dumps([{"name": name, "inputSchema": {"type": "object"}} for name in names]))
            await call.source.servers.refresh(call.source.servers.servers["fix"], str(call.workspace))
    async with calling(tmp_path, servers, look=False) as call:
        assert "mcp__fix__add" in call.tools()
        assert "mcp__fix__new" not in call.tools()
