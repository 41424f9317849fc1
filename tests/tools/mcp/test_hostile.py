"""Hostile schemas cost their own tool alone: what is let through, each dialect takes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hermes_agent.app.mcp.source import fits
from hermes_agent.core.messages import ToolSchema
from hermes_agent.host.late import late
from hermes_agent.providers.dialects import DIALECTS
from hermes_agent.providers.tool_schemas import fitted
from hermes_agent.store.mcp.catalogue import McpTool
from hermes_agent.tools.mcp.listing import judged, tool_name
from hermes_agent.tools.mcp.settings import McpServerSettings, Server

SERVER = Server(name="s", settings=McpServerSettings(command="run"))
WORDS = ["object", "array", "string", 7, None, True, [], {}, "x" * 1000, "#/$defs/a", "#/nowhere", "http://x.test/s"]
KEYS = ["type", "properties", "items", "$ref", "anyOf", "oneOf", "allOf", "not", "enum", "required", "$defs", "a"]


def schema(draw: random.Random, depth: int) -> Any:  # noqa: ANN401 - any JSON
    if depth == 0 or draw.random() < 0.3:
        return draw.choice(WORDS)
    if draw.random() < 0.2:
        return [schema(draw, depth - 1) for _ in range(draw.randrange(4))]
    return {draw.choice(KEYS): schema(draw, depth - 1) for _ in range(draw.randrange(5))}


def deep(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        found = {"type": "object", "properties": {"in": found}}
    return found


@pytest.mark.parametrize("seed", range(5))
def test_what_is_let_through_each_dialect_takes(seed: int):
    draw = random.Random(seed)
    hostile = [{"type": "object", **dict(enumerate_keys(draw))} for _ in range(100)]
    hostile += [deep(40), deep(5_000), {"type": "object", "$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}]
    tools = [McpTool(name=f"t{number}", parameters=each) for number, each in enumerate(hostile)]
    good = McpTool(name="good", parameters={"type": "object", "properties": {"a": {"type": "string"}}})

    found = judged(SERVER, [*tools, good], fits)

    assert found[-1].why == ""
    offered = [each for each in found if not each.why]
    schemas = [
        ToolSchema(name=tool_name("s", each.name), description="", parameters=each.parameters) for each in offered
    ]
    for where in DIALECTS.values():
        taken, aside = fitted(schemas, late(where).tools)
        assert (len(taken), aside) == (len(offered), ())


def enumerate_keys(draw: random.Random) -> list[tuple[str, Any]]:
    return [(draw.choice(KEYS[1:]), schema(draw, 4)) for _ in range(3)]
