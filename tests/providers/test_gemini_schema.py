"""Schemas in Gemini's subset, judged by a double that refuses what the service refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.core.model import ToolSchema
from hermes_agent.providers.dialects.gemini import RULES
from hermes_agent.providers.gemini_schema import gemini_schema
from hermes_agent.providers.tool_schemas import fit
from tests.doubles.gemini_request import check_schema

POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "name": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "string", "description": "d"}, {"type": "STRING", "description": "d"}),
        ({"type": "object", "properties": {}, "additionalProperties": False}, {"type": "OBJECT"}),
        ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": "INTEGER", "nullable": True}),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}]}),
        ({"type": ["integer", "string"]}, {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}]}),
        ({"const": "a"}, {"type": "STRING", "enum": ["a"]}),
        ({"enum": ["a", None]}, {"type": "STRING", "enum": ["a"], "nullable": True}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "INTEGER", "description": "One of: 1, 2."}),
        ({"type": "boolean", "default": False}, {"type": "BOOLEAN", "description": "Default: false."}),
        ({"type": "string", "format": "uri"}, {"type": "STRING"}),
        ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}),
        ({"type": "null"}, {"type": "STRING", "nullable": True}),
        (
            {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a", "gone"]},
            {"type": "OBJECT", "properties": {"a": {"type": "NUMBER"}}, "required": ["a"]},
        ),
        (
            {"type": "array", "items": POINT, "minItems": 1},
            {
                "type": "ARRAY",
                "minItems": 1,
                "items": {"type": "OBJECT", "properties": {"x": {"type": "INTEGER"}}, "required": ["x"]},
            },
        ),
        (
            {"allOf": [POINT, {"properties": {"y": {"type": "string"}}}]},
            {
                "type": "OBJECT",
                "properties": {"x": {"type": "INTEGER"}, "y": {"type": "STRING"}},
                "required": ["x"],
            },
        ),
    ],
    ids=str,
)
def test_what_the_subset_lacks_is_said_in_what_it_has(schema: dict, told: dict):
    assert gemini_schema(schema) == told


def test_what_may_be_anything_is_each_kind():
    told = gemini_schema({"type": "object", "properties": {"value": {}, "list": {"type": "array"}, "yes": True}})

    check_schema(told, "parameters")
    assert [kind["type"] for kind in told["properties"]["value"]["anyOf"]] == ["STRING", "NUMBER", "BOOLEAN", "OBJECT"]
    assert told["properties"]["yes"] == told["properties"]["list"]["items"] == told["properties"]["value"]


def test_the_schema_that_was_given_is_not_changed():
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"], "default": "x"}}}
    before = repr(schema)

    gemini_schema(schema)
    assert repr(schema) == before


SCALARS = st.sampled_from([None, True, 0, 1.5, "a", "b"])
SCHEMAS = st.recursive(
    st.one_of(
        st.builds(lambda kind: {"type": kind}, st.sampled_from(["string", "integer", "number", "boolean", "null"])),
        st.builds(lambda kinds: {"type": kinds}, st.lists(st.sampled_from(["string", "integer", "null"]), min_size=1)),
        st.builds(lambda values: {"enum": values}, st.lists(SCALARS, min_size=1, max_size=3)),
        st.builds(lambda value: {"const": value}, SCALARS),
        st.sampled_from([{}, True, {"$ref": "#/$defs/node"}, {"type": "object"}]),
    ),
    lambda inner: st.one_of(
        st.builds(lambda one: {"type": "array", "items": one, "uniqueItems": True}, inner),
        st.builds(lambda some: {"type": "array", "prefixItems": some}, st.lists(inner, max_size=2)),
        st.builds(lambda some: {"anyOf": some}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda some: {"oneOf": some, "description": "d"}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda some: {"type": "object", "properties": some, "required": [*some], "additionalProperties": False},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        ),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), SCHEMAS, min_size=1, max_size=3))
def test_every_schema_becomes_one_that_the_service_takes(properties: dict):
    schema = {"type": "object", "properties": properties, "$defs": {"node": NODE}}

    told = gemini_schema(fit(ToolSchema(name="f", description="", parameters=schema), RULES).parameters)
    check_schema(told, "parameters")
    assert set(told["properties"]) == set(properties)
