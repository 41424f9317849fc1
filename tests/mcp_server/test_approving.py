"""Who may approve a call over MCP: the owner's key and the person of this machine, and nobody else's key."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from hermes_agent.core.messages import ToolResult
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.testing.model_servers import openai_model, serving
from tests.api.served import GUEST_KEY, MEMBER_KEY, OTHER_KEY, served, until
from tests.app.place import settle_home
from tests.cli.shell import PROGRAM
from tests.mcp_server.clients import ERAS, client, connected, failed, said, told
from tests.mcp_server.test_stdio import variables

DANGEROUS = {"command": "rm -rf build$NONE"}
GUESTS = "tools:\n  guest:\n    enabled: [shell]\n"


def cleaning(heard: Heard) -> Call | Say:
    """A model that does what a person is asked about first, then says what it heard of it."""
    results = [part for part in heard.last.parts if isinstance(part, ToolResult)]
    return Say(f"Heard {results[0].parts[0].text}") if results else Call("terminal", DANGEROUS)


@asynccontextmanager
async def over_http(folder: Path, era: str) -> AsyncIterator[Client]:
    async with connected(folder, cleaning, era) as (_, mcp):
        yield mcp


@asynccontextmanager
async def over_pipes(folder: Path, era: str, flags: Sequence[str] = ("--approve",)) -> AsyncIterator[Client]:
    async with serving(openai_model(cleaning, keys=())) as model:
        home = settle_home(folder / "home", model.url)
        command = StdioServerParameters(
            command=sys.executable,
            args=["-c", PROGRAM, "mcp", "serve", *flags],
            env=variables(home),
            cwd=str(folder),
        )
        async with Client(stdio_client(command), mode=era) as mcp:
            yield mcp


async def open_question(mcp: Client) -> dict[str, str]:
    (question,) = await told(mcp, "permissions_list_open")
    return {"session": question["session"], "question": question["question"]}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("opened", [over_http, over_pipes])
async def test_the_owner_approves_over_mcp(
    tmp_path: Path, era: str, opened: Callable[[Path, str], AbstractAsyncContextManager[Client]]
):
    async with opened(tmp_path, era) as mcp:
        reply = await said(mcp, "ask", message="Clean up")
        question = await open_question(mcp)
        cursor = (await told(mcp, "events_poll"))["cursor"]
        await said(mcp, "permissions_respond", **question, answer="once")
        found = await told(mcp, "events_wait", cursor=cursor, session=question["session"], seconds=10)
        while "run_ended" not in [each["kind"] for each in found["events"]]:
            found = await told(mcp, "events_wait", cursor=found["cursor"], seconds=10)

    assert "rm -rf build" in reply
    assert "waiting" in reply
    assert "Heard [exit 0]" in found["events"][-1]["text"]


@pytest.mark.parametrize("era", ERAS)
async def test_no_other_key_approves(tmp_path: Path, era: str):
    async with connected(tmp_path, cleaning, era, more=GUESTS) as (server, owner):
        await said(owner, "ask", message="Clean up")
        question = await open_question(owner)
        refused = []
        for key in (MEMBER_KEY, OTHER_KEY, GUEST_KEY):
            async with client(server.url, era, key) as other:
                refused.append(await failed(other, "permissions_respond", **question, answer="once"))
        still = await open_question(owner)
        async with client(server.url, era, GUEST_KEY) as guest:
            await said(guest, "ask", message="Clean up")
            own = await open_question(guest)
            denied = await failed(guest, "permissions_respond", **own, answer="once")
        await said(owner, "permissions_respond", **own, answer="deny")

    assert all("There is no session" in each for each in refused), refused
    assert still == question
    assert "Guests cannot approve calls" in denied


@pytest.mark.timeout(60)
@pytest.mark.parametrize("era", ERAS)
async def test_a_program_without_the_right_only_denies(tmp_path: Path, era: str):
    async with connected(tmp_path, cleaning, era) as (server, owner), client(server.url, era, OTHER_KEY) as other:
        reply = await said(other, "ask", message="Clean up")
        question = await open_question(other)
        refused = [await failed(other, "permissions_respond", **question, answer=each) for each in ("once", "yes")]
        still = await open_question(owner)
        await said(other, "permissions_respond", **question, answer="deny")

    assert "decide on another surface" in reply
    assert all("`bert` in `api.approvers`" in each for each in [*refused, reply]), refused
    assert still == question


async def test_over_the_api_a_key_without_the_right_only_denies(tmp_path: Path):
    async with served(tmp_path, cleaning) as server:
        run = (await server.ask("POST", "/v1/runs", {"input": "Clean up"}, key=OTHER_KEY)).json()["id"]
        await until(server, run, "waiting", key=OTHER_KEY)
        refused = await server.ask("POST", f"/v1/runs/{run}/answer", {"answer": "once"}, key=OTHER_KEY)
        denied = await server.ask("POST", f"/v1/runs/{run}/answer", {"answer": "deny"}, key=OTHER_KEY)
        ended = await until(server, run, "answered", key=OTHER_KEY)

    assert "`bert` in `api.approvers`" in refused.text
    assert (refused.status_code, denied.status_code) == (409, 200)
    assert ended["status"] == "answered"


@pytest.mark.timeout(60)
async def test_over_pipes_a_client_approves_only_with_the_flag(tmp_path: Path):
    async with over_pipes(tmp_path, ERAS[0], flags=()) as mcp:
        reply = await said(mcp, "ask", message="Clean up")
        refused = await failed(mcp, "permissions_respond", **await open_question(mcp), answer="once")

    assert "hermes mcp serve --approve" in reply
    assert "hermes mcp serve --approve" in refused
