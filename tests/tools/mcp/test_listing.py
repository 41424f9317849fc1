from __future__ import annotations

import pytest

from hermes_agent.core.errors import ConfigError
from hermes_agent.store.mcp.catalogue import McpTool
from hermes_agent.tools.mcp.listing import judged, tool_name
from hermes_agent.tools.mcp.settings import McpServerSettings, Server, check

SERVER = Server(name="s", settings=McpServerSettings(command="run"))


def test_long_and_odd_names_get_a_hash_and_stay_apart():
    names = [tool_name("s", name) for name in ("a" * 100, "a" * 101, "é", "è", "a b", "a_b")]

    assert len(set(names)) == len(names)
    assert all(len(name) <= 64 and name.isascii() and " " not in name for name in names)
    assert names[-1] == "mcp__s__a_b"


def test_no_server_has_a_name_of_another():
    pairs = [("a", "b__c"), ("a__b", "c"), ("a_", "b"), ("a", "_b"), ("a__", "b"), ("a", "__b")]

    assert len({tool_name(*pair) for pair in pairs}) == len(pairs)


def test_what_no_dialect_takes_is_quarantined_with_the_reason():
    given = [McpTool(name="a", parameters={"type": "object"}), McpTool(name="b", parameters={"type": "object"})]

    found = judged(SERVER, given, lambda schema: "too odd" if schema.name.endswith("b") else "")

    assert [(tool.name, tool.why) for tool in found] == [("a", ""), ("b", "too odd")]


@pytest.mark.parametrize(
    "settings",
    [{}, {"command": "a", "url": "https://b.test"}, {"url": "b.test"}, {"command": "a", "effects": {"t": "x"}}],
)
def test_a_server_that_cannot_be_meant_is_refused(settings: dict):
    with pytest.raises(ConfigError, match=r"mcp_servers: s"):
        check(Server(name="s", settings=McpServerSettings(**settings)))


def test_a_changed_configuration_is_another_server():
    other = Server(name="s", settings=McpServerSettings(command="run", args=("x",)))
    slower = Server(name="s", settings=McpServerSettings(command="run", timeout=5))

    assert other.config != SERVER.config
    assert slower.config == SERVER.config
