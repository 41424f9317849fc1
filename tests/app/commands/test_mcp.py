"""/mcp without servers says how to add one; with servers: tests/app/operations/mcp/test_servers.py."""

from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.providers.demo.script import Say
from tests.app.place import place


async def test_without_servers_it_says_how_to_add_one(tmp_path: Path):
    async with place(tmp_path, [Say("Hi.")]) as here:
        with pytest.raises(HermesError, match=r"There are no MCP servers. `hermes mcp add` adds one"):
            await here.text("/mcp")
