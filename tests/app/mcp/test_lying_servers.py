"""Servers that lie cost a sentence each: the connection goes on, and nothing of theirs is kept without a bound."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes_agent.core.errors import OutcomeUnknown, ToolError
from tests.app.mcp.calling import PLAIN, Calling, calling, plain

LYING = Path(__file__).with_name("lying_server.py")


@asynccontextmanager
async def lied_to(tmp_path: Path, **more: object) -> AsyncIterator[Calling]:
    (tmp_path / "work").mkdir()
    shutil.copy(LYING, tmp_path / "work")
    look = bool(more.pop("look", True))
    async with calling(tmp_path, {"x": plain(LYING, **more)}, look=look) as call:
        yield call


@pytest.mark.parametrize(
    ("tool", "why"),
    [
        ("large", "longer than 16 MB"),
        ("misleading", "longer than 16 MB"),
        ("deep", "is no message"),
        ("refuses", "not today"),
    ],
)
async def test_an_answer_that_cannot_be_read_ends_its_call_alone(tmp_path: Path, tool: str, why: str):
    async with lied_to(tmp_path, timeout=10.0) as call:
        before = call.processes("x")
        with pytest.raises(ToolError, match=why) as raised:
            await call(f"mcp__x__{tool}")

        assert not isinstance(raised.value, OutcomeUnknown)
        assert await call("mcp__x__fine") == "fine"
        assert call.processes("x") == before


@pytest.mark.parametrize(
    "fields",
    [
        {"a": {"type": "array", "items": 5}},
        {f"f{number}": {"type": "string"} for number in range(51)},
        {"a": {"type": "string", "default": "d" * 200_000}},
    ],
    ids=["no items", "many fields", "large"],
)
async def test_a_form_that_is_none_is_declined(tmp_path: Path, fields: object):
    async with lied_to(tmp_path) as call:
        context = call.context(answers=['{"a": "x"}'])
        said = json.loads(await call("mcp__x__asks", context, fields=fields))

    assert said["result"]["action"] == "decline"
    assert context.asked == []


async def test_what_is_kept_of_a_list_is_bounded(tmp_path: Path):
    async with lied_to(tmp_path, env={"LONG": "20000"}) as call:
        (known,) = call.source.servers.known.values()

    assert len(known.tools) == 5 + 1 + 100
    assert {len(tool.description) for tool in known.tools} == {4_000, 0}
    assert {tool.why.split(",")[0] for tool in known.tools if tool.name.startswith("more")} == {
        "its parameters are larger than 100"
    }
    assert len(known.link.prompts) == 500
    assert {len(prompt.description) for prompt in known.link.prompts} == {4_000}


async def test_a_list_of_prompts_that_cannot_be_read_costs_no_tool(tmp_path: Path):
    async with lied_to(tmp_path, env={"LONG": "4000", "PROMPTS": "5000"}) as call:
        assert await call("mcp__x__fine") == "fine"
        assert call.source.servers.known["x"].link.prompts == ()


async def test_prompts_and_resources_are_all_listed_the_first_time(tmp_path: Path):
    async with lied_to(tmp_path, look=False) as call:
        prompts = await call("mcp_prompt", server="x")
        resources = await call("mcp_resource", action="list", server="x")

    assert len(prompts.splitlines()) == 500
    assert len(resources.splitlines()) == 500


async def test_a_server_that_was_only_looked_at_ends_too(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain(PLAIN, idle=0.3)}) as call:
        assert call.source.servers.known["fix"].tools
        async with asyncio.timeout(10):
            while call.processes("fix"):
                await asyncio.sleep(0.05)


async def test_a_secret_that_a_server_repeats_is_not_kept(tmp_path: Path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.env").write_text("TOKEN=hunter2-very-private-0451\n")
    env = {"TOKEN": "${secret:TOKEN}", "LONG": "0"}
    async with lied_to(tmp_path, env=env) as call:
        title = call.source.servers.known["x"].link.title
    async with calling(tmp_path, {"x": plain(LYING, env=env | {"DIES": "1"})}) as call:
        why = call.source.servers.known["x"].link.why
    said = tmp_path / "home/logs/mcp/x/stderr.log"

    assert title == "[secret TOKEN]"
    assert why == "its program ended with 1: [secret TOKEN] is no token"
    assert said.stat().st_mode & 0o777 == 0o600


async def test_a_secret_in_what_a_server_lists_is_not_kept(tmp_path: Path):
    secret = "hunter2-very-private-0451"
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.env").write_text(f"TOKEN={secret}\n")
    listed = [
        {"name": "one", "description": f"Uses {secret}.", "inputSchema": {"type": "object", "default": {"a": secret}}},
        {"name": f"call_{secret}", "inputSchema": {"type": "object", "properties": {secret: {"enum": [secret]}}}},
    ]
    (tmp_path / "work").mkdir()
    (tmp_path / "work/listed.json").write_text(json.dumps(listed))
    servers = {"fix": plain(PLAIN, env={"HOSTILE": "listed.json"})}
    async with calling(tmp_path, servers):
        pass
    async with calling(tmp_path, servers, look=False) as call:
        tools = call.source.servers.known["fix"].tools

    assert secret not in str(tools)
    assert tools[0].parameters == {"type": "object", "default": {"a": "[secret TOKEN]"}}
    assert tools[0].why == ""
    assert tools[1].why == "its name holds a secret"


async def test_a_secret_in_an_error_of_a_server_is_not_told(tmp_path: Path):
    secret = "hunter2-very-private-0451"
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.env").write_text(f"TOKEN={secret}\n")
    async with lied_to(tmp_path, env={"LONG": "0"}) as call:
        with pytest.raises(ToolError) as refused:
            await call("mcp__x__refuses", secret=secret)

    assert "not today [secret TOKEN]" in str(refused.value.quoted)


async def test_a_server_that_is_being_opened_ends_with_the_others(tmp_path: Path):
    async with calling(tmp_path, {"deaf": plain(command="/bin/sleep", args=("60",))}, look=False) as call:
        looking = asyncio.create_task(call.source.look(str(call.workspace)))
        async with asyncio.timeout(10):
            while not call.processes("deaf"):
                await asyncio.sleep(0.02)
        await call.source.close()
        assert call.processes("deaf") == []
        await looking
