from __future__ import annotations

import asyncio

import pytest

from hermes_agent.core.forms import Field
from hermes_agent.core.tool import Question
from hermes_agent.tools.mcp.questions import Exchange, fields_of
from tests.tools.bench import Context


def one(schema: dict, *, required: bool = False) -> Field:
    fields = fields_of({"properties": {"x": schema}, "required": ["x"] if required else []})
    assert fields is not None
    return fields[0]


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ({"type": "string", "title": "Name"}, Field(name="x", title="Name")),
        ({"type": "integer", "default": 7}, Field(name="x", title="x", type="integer", default="7")),
        ({"type": "boolean", "default": False}, Field(name="x", title="x", type="boolean", default="false")),
        (
            {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
            Field(name="x", title="x", type="choice", choices=("a", "b"), labels=("A", "B")),
        ),
        (
            {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]},
            Field(name="x", title="x", type="choice", choices=("a", "b"), labels=("A", "b")),
        ),
        (
            {"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a"]},
            Field(name="x", title="x", type="choices", choices=("a", "b"), default='["a"]'),
        ),
        (
            {"type": "array", "items": {"enum": ["a", "b"]}, "default": "a"},
            Field(name="x", title="x", type="choices", choices=("a", "b")),
        ),
        ({"type": "integer", "default": "seven"}, Field(name="x", title="x", type="integer")),
        ({"type": "number", "default": 10**400}, Field(name="x", title="x", type="number", default=str(10**400))),
        ({"type": "number", "description": "in km"}, Field(name="x", title="x (in km)", type="number")),
    ],
)
def test_a_schema_becomes_a_field(schema: dict, field: Field):
    assert one(schema) == field
    assert one(schema, required=True).required


@pytest.mark.parametrize("schema", [{"type": "object"}, {"type": "array", "items": {"type": "object"}}, {}, "text"])
def test_what_is_no_plain_field_makes_no_form(schema: object):
    assert fields_of({"properties": {"x": schema}}) is None


async def test_a_question_of_a_call_that_is_over_is_declined():
    exchange = Exchange(Context(workspace=""), 5)
    async with exchange.limit:
        waiting = asyncio.create_task(exchange.ask(Question(text="Who?")))
        serving = asyncio.create_task(exchange.serve())
        await asyncio.sleep(0)
        serving.cancel()

        assert await waiting == ""
        assert await exchange.ask(Question(text="And now?")) == ""
