"""What a server's settings hold in plain is hidden wherever the server is shown."""

from __future__ import annotations

import time

import msgspec
import pytest

from hermes_agent.core.errors import ConfigError
from hermes_agent.tools.mcp.settings import McpServerSettings, Server, from_json, resolved, secrets_in


@pytest.mark.parametrize(
    ("settings", "where", "literals"),
    [
        (
            {"url": "https://bob:pw12345678@x.test/mcp?token=abcdefgh12&mode=x#f"},
            "https://[hidden]@x.test/mcp?token=[hidden]&mode=[hidden]#f",
            {"bob:pw12345678", "pw12345678", "abcdefgh12"},
        ),
        (
            {
                "command": "npx",
                "args": ("-y", "auth", "server", "--api-key", "sk-12345678", "--dir=/tmp", "--port", "8"),
            },
            "npx -y auth server --api-key [hidden] --dir=/tmp --port 8",
            {"sk-12345678"},
        ),
        (
            {"command": "npx", "args": ("--header", "Authorization: Bearer zzzzzzzz9", "https://y.test?key=q1234567")},
            "npx --header Authorization: Bearer [hidden] https://y.test?key=[hidden]",
            {"zzzzzzzz9", "q1234567"},
        ),
        (
            {"command": "a", "env": {"MY_TOKEN": "ghp_12345678", "MONKEY": "banana", "API_KEY": "${secret:K}"}},
            "a",
            {"ghp_12345678"},
        ),
        (
            {"url": "https://x.test/", "headers": {"Authorization": "Bearer hhhhhhhh", "Accept": "text/event-stream"}},
            "https://x.test/",
            {"hhhhhhhh"},
        ),
    ],
)
def test_where_a_server_is_holds_no_secret(settings: dict, where: str, literals: set[str]):
    server = Server(name="s", settings=McpServerSettings(**settings))

    assert server.where == where
    assert set(server.literals) == literals


def test_secrets_are_put_into_every_part_of_a_server():
    own = McpServerSettings(url="${BASE:-https://x.test}/mcp?key=${secret:K}", headers={"A": "Bearer ${K}", "B": "b"})
    started = McpServerSettings(command="${RUN:-run}", args=("--key", "${secret:K}"))

    found = resolved(Server(name="s", settings=own), {"K": "12345678"}.get)

    assert (found.url, found.headers) == ("https://x.test/mcp?key=12345678", {"A": "Bearer 12345678", "B": "b"})
    found = resolved(Server(name="s", settings=started), {"K": "12345678"}.get)
    assert (found.command, found.args) == ("run", ("--key", "12345678"))
    with pytest.raises(ConfigError, match="There is no secret K"):
        resolved(Server(name="s", settings=own), {}.get)


def test_a_sign_in_stays_on_https_whatever_the_secret_says():
    own = McpServerSettings(url="${BASE}/mcp", auth="oauth")

    with pytest.raises(ConfigError, match="signing in needs https"):
        resolved(Server(name="s", settings=own), {"BASE": "http://x.test"}.get)


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ('["${A:-", "${B}"]', ["A", "B"]),
        ('["${A:-${B}}", "${input:my-key}"]', ["A", "B", "my_key"]),
        ('[["${Z:-", ["${A:-", "${B}"]], {"${C}": 1}]', ["A", "B", "C", "Z"]),
        (r'["\u0024{A}", "$\u007bsecret:B\u007d"] // ${C}', ["A", "B"]),
        ('["${workspaceFolder}/x", "$A", "{B}"]', []),
    ],
)
def test_no_secret_of_a_file_hides_behind_another(entry: str, names: list[str]):
    assert secrets_in(f'{{"mcpServers": {{"a": {{"command": "x", "args": {entry}\n}}}}}}') == names


@pytest.mark.parametrize(
    "text", [b'"' + b'\\"' * 200_000, b"/* " * 200_000, b'",' + b", " * 200_000, b"[" * 200_000, b'"\xff"']
)
def test_a_hostile_file_is_no_json_and_costs_no_time(text: bytes):
    before = time.process_time()

    with pytest.raises(msgspec.DecodeError):
        from_json(text)

    assert time.process_time() - before < 2  # Seconds; what is not linear takes hours.
