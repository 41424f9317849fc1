"""Tools as the dialects take them."""

import copy
import json
from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.messages import ToolSchema
from hermes_agent.providers.tool_schemas import PLAIN, ToolRules, Unfit, fit, fitted, wire_name
from tests.doubles.gemini_request import check_json_schema

DRAFT = "https://json-schema.org/draft/2020-12/schema"
INLINED = ToolRules(inline=True, described=True, letter_first=True)
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "name": {"type": "string"}}}


def tool(parameters: dict, name: str = "f") -> ToolSchema:
    return ToolSchema(name=name, description="", parameters=parameters)


@pytest.mark.parametrize(
    ("given_parameters", "sent"),
    [
        ({}, {"type": "object", "properties": {}}),
        ({"type": "object", "additionalProperties": False}, None),
        ({"properties": {"a": {"type": "array"}}}, {"properties": {"a": {"type": "array", "items": {}}}}),
        (
            {"anyOf": [POINT, {"properties": {"y": {}}, "required": ["x", "y"]}]},
            {"properties": {"y": {}, "x": {"type": "integer"}}, "required": ["x"]},
        ),
        (
            {"allOf": [POINT, {"properties": {"y": True}, "required": ["y"]}]},
            {"properties": {"y": {}, "x": {"type": "integer"}}, "required": ["x", "y"]},
        ),
        ({"$ref": "#/$defs/p", "$defs": {"p": POINT}}, {**POINT, "$defs": {"p": POINT}}),
        ({"properties": {"p": {"$ref": "#/$defs/p"}}, "$defs": {"p": POINT}}, None),
    ],
    ids=str,
)
def test_parameters_are_one_object_that_says_what_its_lists_hold(given_parameters: dict, sent: dict | None):
    wanted = {"type": "object", "properties": {}} | (given_parameters if sent is None else sent)
    assert fit(tool(given_parameters), PLAIN).parameters == wanted


def test_references_become_what_they_name_where_they_are_not_known():
    parameters = {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/p", "description": "where"}, "n": {"$ref": "#/$defs/node"}},
        "$defs": {"p": POINT, "node": NODE},
    }
    sent = fit(tool(parameters), INLINED)
    assert "$defs" not in sent.parameters
    assert sent.parameters["properties"]["p"] == {**POINT, "description": "where"}
    node = sent.parameters["properties"]["n"]
    assert node["properties"] == {"next": {"type": "object"}, "name": {"type": "string"}}
    assert sent.description == "f"


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"type": "string"}, "`string` instead of an object"),
        ({"anyOf": [POINT, {"type": "string"}]}, "no plain object"),
        ({"properties": {"a": {"$ref": "https://example.org/s.json"}}}, "is elsewhere"),
        ({"properties": {"a": {"$ref": "#/$defs/gone"}}}, "is not there"),
        ({"$ref": "#"}, "refers to itself"),
        ({"properties": {"a": 3}}, "where a schema should be"),
        ({"properties": {"a": {"default": {1, 2}, "enum": [1j]}}}, "not JSON"),
    ],
    ids=str,
)
def test_what_cannot_be_written_is_set_aside_alone_and_says_why(parameters: dict, reason: str):
    good, aside = fitted([tool(POINT, "a"), tool(parameters, "b"), tool(POINT, "c")], PLAIN)
    assert [each.name for each in good] == ["a", "c"]
    (only,) = aside
    assert only.name == "b"
    with pytest.raises(Unfit, match=reason):
        fit(tool(parameters), PLAIN)


def test_parameters_without_a_bottom_are_set_aside():
    deep: dict = {"type": "object"}
    for _ in range(60):
        deep = {"type": "object", "properties": {"a": deep}}
    with pytest.raises(Unfit, match="deep"):
        fit(tool(deep), PLAIN)


def test_a_tool_without_a_name_is_set_aside():
    with pytest.raises(Unfit, match="no name"):
        fit(tool({}, ""), PLAIN)


@pytest.mark.parametrize("rules", [PLAIN, INLINED, ToolRules(longest_name=128)], ids=str)
@given(st.lists(st.text(min_size=1, max_size=200), unique=True, max_size=6))
def test_every_name_becomes_one_that_is_taken_and_no_two_the_same(rules: ToolRules, names: list[str]):
    sent = [wire_name(name, rules) for name in names]
    assert all(rules.fits(name) for name in sent)
    assert len(set(sent)) == len(names)


def test_a_name_that_is_taken_stays():
    assert [wire_name(name, PLAIN) for name in ("read_file", "mcp-x_2", "a" * 64)] == ["read_file", "mcp-x_2", "a" * 64]
    assert wire_name("2nd", INLINED).startswith("t2nd_")


LEAVES = st.sampled_from(
    [
        {},
        True,
        {"type": "string"},
        {"type": ["array", "null"]},
        {"$ref": "#/$defs/node"},
        {"const": 1},
        {"type": "array"},
    ]
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda one: {"type": "array", "items": one}, inner),
        st.builds(lambda some: {"anyOf": some}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda some: {"type": "object", "properties": some, "required": [*some]},
            st.dictionaries(st.sampled_from(["a", "items", "$ref"]), inner, max_size=3),
        ),
    ),
    max_leaves=8,
)


def inside(schema: object) -> Iterator[dict]:
    if isinstance(schema, dict):
        yield schema
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    for one in inner:
        yield from inside(one)


@given(st.dictionaries(st.sampled_from("abc"), SCHEMAS, max_size=3), st.sampled_from([PLAIN, INLINED]))
def test_every_object_stays_an_object_and_what_was_given_is_not_changed(properties: dict, rules: ToolRules):
    parameters = {"$schema": DRAFT, "type": "object", "properties": properties, "$defs": {"node": NODE}}
    before = copy.deepcopy(parameters)
    sent = fit(tool(parameters), rules).parameters
    assert set(sent["properties"]) == set(properties)
    assert parameters == before
    if rules.inline:
        assert not any(isinstance(one.get("$ref"), str) for one in inside(sent))
        check_json_schema(sent, "parameters")
    json.dumps(sent)
