"""Tokens are renewed once, by whoever comes first, and a renewal that was cut short is told."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes_agent.core.errors import AuthRefused, HomeError, ServerFailed, Unreachable
from hermes_agent.host.http import Http
from hermes_agent.host.paths import Home
from hermes_agent.providers.route import load_vendor
from hermes_agent.providers.signin.token_refresh import SignedIn, TokenRefresh
from hermes_agent.providers.vendor import Vendor
from hermes_agent.testing.clock import FakeClock
from tests.providers.signin.double import TokenServer, token_server

ROOT = Path(__file__).parents[3]
NOW = 1_700_000_000.0
OLD = SignedIn(access="old", refresh="refresh-0", expires=NOW - 1, account="acc-1", since=NOW - 90_000)
CHILD = """
import asyncio, sys
from pathlib import Path
from hermes_agent.core.clock import SystemClock
from hermes_agent.host.http import Http
from hermes_agent.host.paths import Home
from hermes_agent.providers.route import load_vendor
from hermes_agent.providers.signin.token_refresh import TokenRefresh

async def main(home, url):
    secrets = {"OPENAI_AUTH_URL": url}.get
    renewal, http = TokenRefresh(Home(root=Path(home), base=Path(home)), SystemClock(), secrets), Http()
    sys.stdin.readline()
    grant = await renewal.grant(load_vendor("openai-codex"), http)
    await http.close()
    print(grant.key, dict(grant.headers)["chatgpt-account-id"])

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(root=tmp_path, base=tmp_path).ensure()


@pytest.fixture
def vendor() -> Vendor:
    return load_vendor("openai-codex")


def token_refresh_of(home: Home, server: TokenServer, clock: FakeClock | None = None) -> TokenRefresh:
    return TokenRefresh(home, clock or FakeClock(NOW), {"OPENAI_AUTH_URL": server.url}.get)


@asynccontextmanager
async def asking() -> AsyncIterator[Http]:
    http = Http()
    try:
        yield http
    finally:
        await http.close()


async def test_a_fresh_token_is_used_as_it_is(home: Home, vendor: Vendor):
    async with token_server() as server, asking() as http:
        renewal = token_refresh_of(home, server)
        renewal.file.put(vendor.name, SignedIn(access="good", expires=NOW + 4000, account="acc-1"))
        grant = await renewal.grant(vendor, http)

    assert (grant.key, server.asked) == ("good", [])
    assert dict(grant.headers)["chatgpt-account-id"] == "acc-1"


async def test_an_old_token_is_renewed_and_on_the_disk_for_its_owner_alone(home: Home, vendor: Vendor):
    async with token_server() as server, asking() as http:
        renewal = token_refresh_of(home, server)
        renewal.file.put(vendor.name, OLD)
        grant = await renewal.grant(vendor, http)

    kept = renewal.file.read()[vendor.name]
    assert grant.key == kept.access == "access-1"
    assert (kept.refresh, kept.expires, kept.since, kept.renewing) == ("refresh-1", NOW + 3600, OLD.since, 0.0)
    assert stat.S_IMODE((home.root / "auth.json").stat().st_mode) == 0o600


async def test_a_token_that_the_vendor_refused_is_renewed_though_it_looks_fresh(home: Home, vendor: Vendor):
    async with token_server() as server, asking() as http:
        renewal = token_refresh_of(home, server)
        renewal.file.put(vendor.name, SignedIn(access="revoked", refresh="refresh-0", expires=NOW + 4000))
        first = await renewal.grant(vendor, http, refused="revoked")
        again = await renewal.grant(vendor, http, refused="revoked")

    assert (first.key, again.key, server.renewals) == ("access-1", "access-1", 1)


async def test_many_at_once_renew_once(home: Home, vendor: Vendor):
    async with token_server() as server, asking() as http, asyncio.TaskGroup() as group:
        renewals = [token_refresh_of(home, server) for _ in range(8)]
        renewals[0].file.put(vendor.name, OLD)
        grants = [group.create_task(renewal.grant(vendor, http)) for renewal in renewals]
        keys = [(await grant).key for grant in grants]

    assert (keys, server.renewals) == (["access-1"] * 8, 1)


async def test_ten_processes_and_one_refresh_token_make_one_refresh_and_ten_successes(home: Home, vendor: Vendor):
    async with token_server() as server:
        token_refresh_of(home, server).file.put(vendor.name, OLD)
        children = [await child(home, server) for _ in range(10)]
        for process in children:
            process.stdin.write(b"go\n")
            process.stdin.close()
        said = [await process.communicate() for process in children]

    assert [out.decode() for out, _ in said] == ["access-1 acc-1\n"] * 10, said
    assert server.renewals == 1
    assert [path for path, _ in server.asked] == ["/oauth/token"]


async def test_a_process_killed_between_refresh_and_save_leaves_a_mark_that_is_told(home: Home, vendor: Vendor):
    async with token_server(hang=asyncio.Event()) as server, asking() as http:
        renewal = token_refresh_of(home, server)
        renewal.file.put(vendor.name, OLD)
        process = await child(home, server)
        process.stdin.write(b"go\n")
        process.stdin.close()
        await server.used.wait()
        process.kill()
        await process.communicate()
        server.hang.set()

        assert renewal.file.read()[vendor.name].renewing > 0
        with pytest.raises(
            AuthRefused, match=r"ended before it could finish.*already used.*`hermes login openai-codex`"
        ):
            await renewal.grant(vendor, http)
        with pytest.raises(AuthRefused, match="hermes login"):
            await renewal.grant(vendor, http)

    assert len(server.asked) == 2  # the lost sign-in is not asked for a third time


async def test_a_process_killed_before_the_server_heard_of_it_does_no_harm(home: Home, vendor: Vendor):
    async with token_server() as server, asking() as http:
        renewal = token_refresh_of(home, server)
        renewal.file.put(vendor.name, SignedIn(access="old", refresh="refresh-0", expires=NOW - 1, renewing=NOW - 5))
        grant = await renewal.grant(vendor, http)

    assert (grant.key, renewal.file.read()[vendor.name].renewing) == ("access-1", 0.0)


async def test_a_revoked_refresh_token_says_how_to_sign_in_again(home: Home, vendor: Vendor):
    async with token_server(refresh="another") as server, asking() as http:
        renewal = token_refresh_of(home, server)
        renewal.file.put(vendor.name, OLD)
        with pytest.raises(AuthRefused, match=r"ChatGPT can no longer be used.*`hermes login openai-codex`") as caught:
            await renewal.grant(vendor, http)

    assert "refresh-0" not in str(caught.value)
    assert renewal.file.read()[vendor.name].lost


async def test_an_expired_sign_in_without_a_refresh_token_says_so(home: Home, vendor: Vendor):
    async with token_server() as server, asking() as http:
        renewal = token_refresh_of(home, server)
        renewal.file.put(vendor.name, SignedIn(access="old", expires=NOW - 1))
        with pytest.raises(AuthRefused, match="it has expired"):
            await renewal.grant(vendor, http)


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_failing_server_loses_nothing(home: Home, vendor: Vendor, status: int):
    async with token_server(fail=status) as server, asking() as http:
        renewal = token_refresh_of(home, server)
        renewal.file.put(vendor.name, OLD)
        with pytest.raises(ServerFailed, match="temporarily_unavailable"):
            await renewal.grant(vendor, http)
        server.fail = 0
        assert (await renewal.grant(vendor, http)).key == "access-1"


async def test_a_proxy_that_refuses_loses_nothing(home: Home, vendor: Vendor):
    async with token_server(fail=407) as server, asking() as http:
        renewal = token_refresh_of(home, server)
        renewal.file.put(vendor.name, OLD)
        with pytest.raises(AuthRefused, match="407"):
            await renewal.grant(vendor, http)
        assert renewal.file.read()[vendor.name] == OLD


async def test_a_server_that_is_not_there_loses_nothing(home: Home, vendor: Vendor):
    async with asking() as http:
        renewal = TokenRefresh(home, FakeClock(NOW), {"OPENAI_AUTH_URL": "http://127.0.0.1:9"}.get)
        renewal.file.put(vendor.name, OLD)
        with pytest.raises(Unreachable, match="cannot be reached"):
            await renewal.grant(vendor, http)

    assert renewal.file.read()[vendor.name].refresh == "refresh-0"


async def test_who_is_not_signed_in_is_told_how(home: Home, vendor: Vendor):
    async with token_server() as server, asking() as http:
        renewal = token_refresh_of(home, server)
        assert renewal.source(vendor) is None
        with pytest.raises(AuthRefused, match="`hermes login openai-codex`"):
            await renewal.grant(vendor, http)


async def test_a_file_of_another_program_is_not_touched(home: Home, vendor: Vendor):
    (home.root / "auth.json").write_text('{"tokens": {}}')
    async with token_server() as server:
        renewal = token_refresh_of(home, server)
        with pytest.raises(HomeError, match="move it away"):
            renewal.has(vendor)
        with pytest.raises(HomeError):
            await renewal.forget(vendor.name)

    assert (home.root / "auth.json").read_text() == '{"tokens": {}}'


async def test_signing_out_forgets_one_and_keeps_the_others(home: Home, vendor: Vendor):
    async with token_server() as server:
        renewal = token_refresh_of(home, server)
        renewal.file.put(vendor.name, OLD)
        renewal.file.put("anthropic", OLD)

        assert [await renewal.forget(vendor.name) for _ in range(2)] == [True, False]
        assert list(renewal.file.read()) == ["anthropic"]


def test_tokens_are_never_shown():
    assert "old" not in repr(OLD)
    assert "refresh-0" not in repr(OLD)


async def child(home: Home, server: TokenServer) -> asyncio.subprocess.Process:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HERMES_HOME": str(home.root)}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        CHILD,
        str(home.root),
        server.url,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )
