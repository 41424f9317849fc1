"""MCP servers for people: the same state in the chat, the command and the agent."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.mcp.servers import list_servers, read_named
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Origin
from hermes_agent.providers.demo.script import Call, Say
from tests.app.mcp.calling import PLAIN
from tests.app.place import place

CONFIG = f"""mcp_servers:
  fix:
    command: {sys.executable}
    args: [{PLAIN.name}]
    trust: hints
"""
FIND = Call("find_tools", {"query": "add"})
ADD = Call("use_tool", {"name": "mcp__fix__add", "arguments": {"a": 2, "b": 3}})


async def test_the_agent_finds_and_uses_a_server_and_the_chat_shows_it(tmp_path: Path):
    async with place(tmp_path, [FIND, ADD, Say("It is 5.")], more=CONFIG) as here:
        shutil.copy(PLAIN, here.record.workspace)
        assert "fix · new" in await here.text("/mcp")
        await here.say("What is 2 + 3?")

        assert "fix · ready · 22 tools" in await here.text("/mcp list")
        assert "mcp__fix__add (reads) Does add." in await here.text("/mcp show fix")
        with pytest.raises(HermesError, match=r"There is no MCP server `other`. There are: fix"):
            await here.text("/mcp test other")
        stranger = Principal(platform="cli", user="x", standing=Standing.MEMBER)
        with pytest.raises(HermesError, match="Only the owner"):
            await list_servers(Access(system=here.runtime, who=stranger))


async def test_a_thousand_changes_of_a_servers_tools_change_no_prefix(tmp_path: Path):
    calls = [Call("use_tool", {"name": f"mcp__fix__{name}", "arguments": {}}) for name in ("many", "more", "many")]
    async with place(tmp_path, [FIND, *calls, Say("One."), FIND, Say("Two.")], more=CONFIG) as here:
        shutil.copy(PLAIN, here.record.workspace)
        await here.say("Go")
        await here.say("Again")
        bodies = [json.loads(each.request.body) for each in here.server.exchanges]

    prefixes = {json.dumps([body["tools"], body["messages"][0]], sort_keys=True) for body in bodies}
    assert len(bodies) >= 6
    assert len(prefixes) == 1
    assert "mcp__fix__" not in prefixes.pop()


async def test_a_message_names_resources_of_servers(tmp_path: Path):
    async with place(tmp_path, [Say("Hi.")], more=CONFIG) as here:
        shutil.copy(PLAIN, here.record.workspace)
        access = Access(system=here.runtime, who=here.runtime.owner, folder=here.record.workspace)
        (part,) = await read_named(access, "Look at @fix:note://one and @fix:note://one, me@fix:x @other:y @fix:")
        none = await read_named(access, "Nothing @here")

    assert (part.text, part.origin) == ("\n\nfix:note://one:\n\nthe note", Origin.TOOL)
    assert none == ()
