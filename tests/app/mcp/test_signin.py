"""A sign-in to an MCP server is kept, renewed once by all processes together, and made anew where it is dead."""

from __future__ import annotations

import asyncio
import stat
import subprocess
import sys
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest

from hermes_agent.app.mcp.signin import sign_in, sign_out
from hermes_agent.core.errors import ConfigError, HermesError, ToolError
from hermes_agent.host.secrets import Secrets
from hermes_agent.tools.mcp.oauth import EARLY
from hermes_agent.tools.mcp.settings import McpServerSettings
from tests.app.mcp.calling import Calling, calling
from tests.app.mcp.issuer import Issuer, issuing

ROOT, PROCESS = Path(__file__).parents[3], Path(__file__).with_name("renewing_process.py")


def signed(issuer: Issuer) -> dict[str, McpServerSettings]:
    return {"s": McpServerSettings(url=f"{issuer.url}/mcp", auth="oauth", trust="hints")}


async def browser(address: str) -> None:
    """A person who agrees, with a browser on this machine."""
    async with httpx2.AsyncClient() as http:
        answer = await http.get(address, follow_redirects=True)
    assert "You may close this page" in answer.text


async def signed_in(call: Calling) -> None:
    await sign_in(call.source, call.source.servers.servers["s"], str(call.workspace), browser)


async def test_without_a_sign_in_the_way_to_it_is_told(tmp_path: Path):
    async with issuing() as issuer, calling(tmp_path, signed(issuer), look=False) as call:
        with pytest.raises(ToolError, match="sign in: hermes mcp login s"):
            await call("mcp_resource", action="list", server="s")

    assert issuer.authorized == 0


async def test_a_sign_in_is_kept_for_the_next_process_and_readable_by_nobody_else(tmp_path: Path):
    async with issuing() as issuer:
        async with calling(tmp_path, signed(issuer), look=False) as call:
            await signed_in(call)
            assert await call("mcp__s__add") == "5"
        async with calling(tmp_path, signed(issuer), look=False) as call:
            assert await call("mcp__s__add") == "5"

    assert (issuer.registered, issuer.authorized, issuer.renewed) == (1, 1, 0)
    assert stat.S_IMODE((tmp_path / "home/mcp-auth.json").stat().st_mode) == 0o600


async def test_the_address_where_a_browser_elsewhere_ended_can_be_pasted(tmp_path: Path):
    came: list[str] = []

    async def show(address: str) -> None:
        async with httpx2.AsyncClient() as http:
            came.append((await http.get(address)).headers["location"])

    async def paste() -> str:
        return came[0]

    async with issuing() as issuer, calling(tmp_path, signed(issuer), look=False) as call:
        await sign_in(call.source, call.source.servers.servers["s"], "", show, paste)

        assert await call("mcp__s__add") == "5"


async def test_tokens_that_ended_are_renewed_once_by_all_together(tmp_path: Path):
    async with issuing(lasts=1) as issuer, AsyncExitStack() as closing:
        async with calling(tmp_path, signed(issuer), look=False) as first:
            await signed_in(first)
        issuer.lasts = 3600
        before = issuer.renewed
        calls = [
            await closing.enter_async_context(calling(tmp_path, signed(issuer), store=None, look=False))
            for _ in range(8)
        ]
        async with asyncio.TaskGroup() as group:
            answers = [group.create_task(call("mcp__s__add")) for call in calls]

        assert [each.result() for each in answers] == ["5"] * 8
        assert issuer.renewed - before == 1
        assert (issuer.reused, issuer.authorized) == (0, 1)


def renewing(folder: Path, issuer: Issuer) -> subprocess.Popen[bytes]:
    path = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    command = [sys.executable, str(PROCESS), str(folder), f"{issuer.url}/mcp", "40"]
    return subprocess.Popen(command, env=path, stdout=subprocess.PIPE)


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_eight_processes_renew_one_sign_in_once_each_time_that_it_ends(tmp_path: Path, full: bool):
    if not full:
        pytest.skip("eight processes run with --full")
    async with issuing(lasts=EARLY + 2) as issuer:
        issuer.prunes = True
        async with calling(tmp_path, signed(issuer), look=False) as call:
            await signed_in(call)
        running = [renewing(tmp_path, issuer) for _ in range(8)]
        said = [await asyncio.to_thread(each.communicate) for each in running]
    counts = [tuple(map(int, out.split())) for out, _ in said]
    gaps = [later - earlier for earlier, later in pairwise(issuer.renewals)]
    print(counts, issuer.renewed, min(gaps))

    assert all(done > 20 and failed == 0 for done, failed in counts)
    assert (issuer.registered, issuer.authorized, issuer.reused) == (1, 1, 0)
    assert issuer.renewed >= 10
    assert min(gaps) > 1.9  # No two renewals of one token.


async def test_a_token_that_is_refused_early_is_renewed_without_a_person(tmp_path: Path):
    async with issuing() as issuer, calling(tmp_path, signed(issuer), look=False) as call:
        await signed_in(call)
        issuer.access.clear()

        assert await call("mcp__s__add") == "5"
        assert (issuer.renewed, issuer.authorized) == (1, 1)


async def test_a_registration_that_the_issuer_forgot_is_dropped_and_made_anew(tmp_path: Path):
    async with issuing() as issuer, calling(tmp_path, signed(issuer), look=False) as call:
        await signed_in(call)
        issuer.access.clear()
        issuer.clients.clear()
        with pytest.raises(ToolError):
            await call("mcp__s__add")

        await signed_in(call)

        assert await call("mcp__s__add") == "5"
        assert issuer.registered == 2


async def test_signing_out_revokes_and_forgets(tmp_path: Path):
    async with issuing() as issuer, calling(tmp_path, signed(issuer), look=False) as call:
        await signed_in(call)
        server = call.source.servers.servers["s"]

        assert await sign_out(call.source, server)

        assert [each.startswith("refresh-token-") for each in issuer.revoked] == [True]
        assert "refresh-token" not in (tmp_path / "home/mcp-auth.json").read_text()
        assert "client1" in (tmp_path / "home/mcp-auth.json").read_text()
        assert not await sign_out(call.source, server, client=True)
        assert "client1" not in (tmp_path / "home/mcp-auth.json").read_text()


async def test_tokens_are_hidden_from_what_is_said(tmp_path: Path):
    async with issuing() as issuer, calling(tmp_path, signed(issuer), look=False) as call:
        await signed_in(call)
        (token,) = issuer.access

        assert token not in call.source._needs.get(Secrets).redact(f"It is {token}.")


async def test_a_refusal_of_the_issuer_is_a_sentence(tmp_path: Path):
    async def show(_: str) -> None:
        pass

    async def paste() -> str:
        return "http://127.0.0.1/callback?error=access_denied&error_description=You+said+no"

    async with issuing() as issuer, calling(tmp_path, signed(issuer), look=False) as call:
        with pytest.raises(HermesError, match="The sign-in failed: You said no"):
            await sign_in(call.source, call.source.servers.servers["s"], "", show, paste)


async def test_a_server_without_sign_in_says_how_to_have_one(tmp_path: Path):
    plain = {"s": McpServerSettings(url="http://127.0.0.1:9/mcp")}
    async with calling(tmp_path, plain, look=False) as call:
        with pytest.raises(ConfigError, match="`hermes mcp configure s auth oauth`"):
            await signed_in(call)
