"""MCP servers for people: the same state in the chat, the command and the agent."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.mcp.servers import list_servers
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.errors import HermesError
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

        assert "fix · ready · 20 tools" in await here.text("/mcp list")
        assert "mcp__fix__add (reads) Does add." in await here.text("/mcp show fix")
        with pytest.raises(HermesError, match=r"There is no MCP server `other`. There are: fix"):
            await here.text("/mcp test other")
        stranger = Principal(platform="cli", user="x", standing=Standing.MEMBER)
        with pytest.raises(HermesError, match="Only the owner"):
            await list_servers(Access(system=here.runtime, who=stranger))
