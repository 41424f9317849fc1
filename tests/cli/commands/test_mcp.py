"""`hermes mcp` on a real home, with a real server."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from hermes_agent.core.errors import ConfigError, HermesError
from tests.app.mcp.calling import PLAIN
from tests.app.mcp.issuer import issuing
from tests.cli.shell import PROGRAM, ROOT, typed
from tests.measured import measured

SERVER = (sys.executable, PLAIN.name)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(PLAIN, work)
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return tmp_path / "home"


def test_a_server_is_added_shown_switched_and_removed(home: Path):
    added = typed(home, "mcp", "add", "fix", "--", *SERVER)
    assert "fix · ready · 22 tools · " in added.out
    assert "  mcp__fix__add (writes) Does add." in added.out

    typed(home, "mcp", "configure", "fix", "trust", "hints")
    shown = json.loads(typed(home, "mcp", "show", "fix", "--json").out)
    assert {"name": "mcp__fix__add", "effect": "reads", "description": "Does add.", "why": ""} in shown["tools"]
    assert shown["prompts"] == ["mcp__fix__greet"]

    typed(home, "mcp", "disable", "fix")
    assert json.loads(typed(home, "mcp", "list", "--json").out)[0]["state"] == "off"
    with pytest.raises(HermesError, match=r"fix is off: `hermes mcp enable fix`"):
        typed(home, "mcp", "test", "fix")
    typed(home, "mcp", "enable", "fix")
    assert "ready" in typed(home, "mcp", "test", "fix").out

    typed(home, "mcp", "remove", "fix")
    assert typed(home, "mcp", "list").err == "There are no MCP servers. `hermes mcp add` adds one.\n"


def test_a_server_that_cannot_be_reached_stays_and_says_why(home: Path):
    said = typed(home, "mcp", "add", "dead", "--", "/does/not/exist")

    assert "The MCP server dead cannot be reached" in said.err
    assert "dead · away · its program ended with 127" in typed(home, "mcp", "list").out


def test_secrets_of_a_server_are_saved_apart(home: Path):
    typed(home, "mcp", "add", "web", "--url", "https://x.test/mcp", "--header", "Authorization=Bearer abc", "--no-test")
    typed(home, "mcp", "add", "own", "--env", "GITHUB_TOKEN=ghp_1", "--env", "MODE=x", "--no-test", "--", "server")

    written = (home / "config.yaml").read_text()
    assert "Bearer abc" not in written
    assert "ghp_1" not in written
    assert "${secret:MCP_WEB_AUTHORIZATION}" in written
    assert "MODE: x" in written
    assert "MCP_OWN_GITHUB_TOKEN=ghp_1" in (home / ".env").read_text()


def test_tokens_that_stand_in_the_settings_are_shown_nowhere(home: Path):
    words = ["--token", "hunter2-token-0451", "https://me:pass-word-77@x.test/?api_key=key-of-mine-99"]
    own = {"command": "sh", "args": ["-c", "echo tried with $2 >&2; exit 3", "sh", *words]}
    servers = {"far": {"url": "http://127.0.0.1:9/mcp?token=tok-of-mine-123"}, "own": own}
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text(json.dumps({"mcp_servers": servers}))
    said: list[object] = []
    said += [typed(home, "mcp", *more) for more in (("list",), ("list", "--json"), ("show", "own", "--json"))]
    for name in ("far", "own"):
        with pytest.raises(HermesError) as raised:
            typed(home, "mcp", "test", name)
        said.append(raised.value)
    shown = " ".join(map(str, said)) + (home / "logs/mcp/own/stderr.log").read_text()

    assert "tried with [secret MCP_own]" in shown
    for secret in ("hunter2-token-0451", "pass-word-77", "key-of-mine-99", "tok-of-mine-123"):
        assert secret not in shown


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("add", "x", "--no-test"), "neither `command` nor `url`"),
        (("add", "x", "--url", "https://x.test", "--no-test", "--", "run"), "both `command` and `url`"),
        (("add", "a b", "--no-test", "--", "run"), "letters, digits"),
        (("add", "x", "--url", "ftp://x.test", "--no-test"), "an address such as"),
        (("add", "x", "--env", "A", "--no-test", "--", "run"), "`A` is not NAME=VALUE"),
        (("configure", "nobody", "trust", "hints"), "no MCP server `nobody`"),
        (("import", "/does/not/exist"), "/does/not/exist is not there"),
    ],
)
def test_what_cannot_be_meant_is_a_sentence(home: Path, words: tuple[str, ...], why: str):
    with pytest.raises(ConfigError, match=why):
        typed(home, "mcp", *words)


def test_servers_of_other_programs_are_taken(home: Path, tmp_path: Path):
    theirs = {
        "mcpServers": {
            "git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"API_KEY": "k-12345678"}},
            "web": {"type": "sse", "url": "https://x.test/sse", "headers": {"X": "${TOKEN}"}},
            "bad": {"command": "a", "url": "https://b.test"},
            "worse": 7,
        }
    }
    file = tmp_path / "theirs.json"
    file.write_text(json.dumps(theirs))

    said = typed(home, "mcp", "import", str(file))

    assert said.out == f"git: taken from {file}\nweb: taken from {file}, and gets the secrets TOKEN\n"
    assert "bad has both `command` and `url`" in said.err
    assert "worse is no object" in said.err
    found = {each["name"]: each for each in json.loads(typed(home, "mcp", "list", "--json").out)}
    assert found["git"]["where"] == "uvx mcp-server-git"
    assert "${secret:TOKEN}" in (home / "config.yaml").read_text()
    assert "left out" in typed(home, "mcp", "import", str(file)).err


async def test_a_person_signs_in_and_out(home: Path):
    async with issuing() as issuer:
        url = f"{issuer.url}/mcp"
        await asyncio.to_thread(typed, home, "mcp", "add", "s", "--url", url, "--auth", "oauth")
        for words in (("login", "s"), ("reauth", "s")):
            said = await signing(home, *words)
            assert "s · ready · 1 tool · " in said
        gone = await asyncio.to_thread(typed, home, "mcp", "logout", "s")

    assert gone.out == "The sign-in to s is forgotten and revoked.\n"
    assert (issuer.registered, issuer.authorized, len(issuer.revoked)) == (2, 2, 2)


def started(home: Path, *words: str) -> subprocess.Popen[bytes]:
    variables = {"PYTHONPATH": str(ROOT / "src"), "HERMES_HOME": str(home), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-u", "-c", PROGRAM, "mcp", *words]
    return subprocess.Popen(command, env={**variables, **measured()}, stdout=subprocess.PIPE)


async def signing(home: Path, *words: str) -> str:
    """Run the command, and be the person who opens the address that it prints."""
    with started(home, *words) as running:
        assert running.stdout is not None
        assert b"Open this address" in await asyncio.to_thread(running.stdout.readline)
        address = (await asyncio.to_thread(running.stdout.readline)).decode().strip()
        async with httpx2.AsyncClient() as http:
            await http.get(address, follow_redirects=True)
        return (await asyncio.to_thread(running.stdout.read)).decode()


def test_a_secret_in_an_address_or_an_argument_is_saved_apart(home: Path) -> None:
    typed(home, "mcp", "add", "far", "--no-test", "--url", "https://bob:pw12345678@x.test/mcp?token=abcdefgh12")
    said = typed(home, "mcp", "add", "near", "--no-test", "--", "run", "--api-key", "sk-12345678", "--port", "8")

    kept = (home / "config.yaml").read_text()
    assert "${secret:MCP_FAR_1}@x.test/mcp?token=${secret:MCP_FAR_2}" in kept
    assert "pw12345678" not in kept and "abcdefgh12" not in kept and "sk-12345678" not in kept
    assert "as the secret MCP_NEAR_1" in said.err


def test_no_server_takes_the_secret_of_another(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    own = {"command": "true", "args": ["--token", "first-12345678"], "env": {"API_KEY": "first-87654321"}}
    other = {"command": "true", "args": ["--token", "other-12345678"], "env": {"API_KEY": "other-87654321"}}
    file.write_text(json.dumps({"mcpServers": {"a-b": own, "a_b": other}}))

    typed(home, "mcp", "import", str(file))

    kept = (home / ".env").read_text()
    assert all(f"{whose}-{number}" in kept for whose in ("first", "other") for number in ("12345678", "87654321"))
    settings = (home / "config.yaml").read_text()
    assert all(settings.count(f"${{secret:MCP_A_B_{name}}}") == 1 for name in ("1", "1_2", "API_KEY", "API_KEY_2"))


def test_what_stands_for_a_secret_stays_as_it_is_and_an_address_too(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    program = {"command": "true", "args": ["${input:key}", "Bearer ${secret:K}"]}
    servers = {"a": program, "b": {"url": "https://u:p@x.test/mcp?token=s"}}
    file.write_text(json.dumps({"mcpServers": servers}))

    typed(home, "mcp", "import", str(file))

    settings = (home / "config.yaml").read_text()
    assert "- ${secret:key}\n" in settings
    assert "- Bearer ${secret:K}\n" in settings
    assert "url: https://u:p@x.test/mcp?token=s" in settings
    assert "b" in typed(home, "mcp", "list").out


def test_a_file_without_servers_says_so(home: Path, tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text("[1, 2]")

    assert "names no servers" in typed(home, "mcp", "import", str(tmp_path / "mcp.json")).err
