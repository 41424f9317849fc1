"""What a server's settings hold in plain is hidden wherever the server is shown."""

from __future__ import annotations

import pytest

from hermes_agent.tools.mcp.settings import McpServerSettings, Server


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
