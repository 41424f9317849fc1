"""/mcp in the chat: listing, signing in, reading the settings again, and prompts of servers as commands."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import httpx2
import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.mcp.servers import begin_sign_in
from hermes_agent.core.chat import Conversation
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Origin
from hermes_agent.providers.demo.script import Say
from tests.app.mcp.calling import PLAIN
from tests.app.mcp.test_signin import issuing
from tests.app.place import Place, place

FIX = f"mcp_servers:\n  fix:\n    command: {sys.executable}\n    args: [{PLAIN.name}]\n"


async def ready(here: Place) -> None:
    shutil.copy(PLAIN, here.record.workspace)
    await here.text("/mcp test fix")


async def test_without_servers_it_says_how_to_add_one(tmp_path: Path):
    async with place(tmp_path, [Say("Hi.")]) as here:
        for line in ("/mcp", "/mcp login x"):
            with pytest.raises(HermesError, match=r"There are no MCP servers. `hermes mcp add` adds one"):
                await here.text(line)
        assert "There are no MCP servers" in await here.text("/reload-mcp")


@pytest.mark.parametrize("words", ["name=Ann Bee", "Ann Bee"])
async def test_a_prompt_of_a_server_is_a_command(tmp_path: Path, words: str):
    async with place(tmp_path, [Say("Hi.")], more=FIX) as here:
        await ready(here)
        done = await here.type(f"/mcp__fix__greet {words}")
        assert done is not None
        assert done.submit is not None
        parts = [(part.origin, part.text) for part in done.submit.parts]
        with pytest.raises(HermesError, match="needs name: say NAME=VALUE"):
            await here.type("/mcp__fix__greet")
        with pytest.raises(HermesError, match="There is no command `/mcp__fix__none`"):
            await here.type("/mcp__fix__none")
        shown = await here.text("/mcp show fix")

    name = "Ann" if "=" in words else "Ann Bee"
    assert parts == [(Origin.OWNER, f"/mcp__fix__greet {words}"), (Origin.TOOL, f"Say hello to {name}.")]
    assert "prompts: /mcp__fix__greet" in shown


async def test_settings_of_servers_are_read_again(tmp_path: Path):
    async with place(tmp_path, [Say("Hi.")]) as here:
        config = here.runtime.home.config_file
        before = config.read_text()
        config.write_text(f"{before}{FIX}")
        assert "fix · new" in await here.text("/reload-mcp")
        assert "fix · new" in await here.text("/mcp")
        config.write_text(f"{before}mcp_servers:\n  fix:\n    comand: x\n")
        with pytest.raises(HermesError, match=r"comand.*The settings of before stay in force"):
            await here.text("/mcp reload")
        assert "fix · new" in await here.text("/mcp")


async def test_a_person_signs_in_from_a_private_chat(tmp_path: Path):
    async with issuing() as issuer:
        more = f"mcp_servers:\n  s:\n    url: {issuer.url}/mcp\n    auth: oauth\n"
        async with place(tmp_path, [Say("Hi.")], more=more) as here:
            with pytest.raises(HermesError, match="No sign-in to s waits"):
                await here.text("/mcp login s http://127.0.0.1/?code=x")
            said = await here.text("/mcp login s")
            address = next(line for line in said.splitlines() if line.startswith("http"))
            async with httpx2.AsyncClient() as http:
                ended = (await http.get(address)).headers["location"]
            done = await here.text(f"/mcp login s {ended}")
            again = await here.text("/mcp login s")

    assert "s · ready" in done
    assert again == "You are signed in to s."


async def test_nobody_signs_in_where_others_read(tmp_path: Path):
    more = "mcp_servers:\n  s:\n    url: http://127.0.0.1:9/mcp\n    auth: oauth\n"
    group = Conversation(platform="telegram", chat_kind="group", chat="all")
    async with place(tmp_path, [Say("Hi.")], more=more) as here:
        with pytest.raises(HermesError, match="Sign in from a private chat"):
            await begin_sign_in(Access(system=here.runtime, who=here.runtime.owner, where=group), "s")
