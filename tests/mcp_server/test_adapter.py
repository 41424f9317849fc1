"""Our tools as tools of the protocol: what they ask, answer, and how they fail, over the SDK's own client in memory."""

from __future__ import annotations

import json

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from hermes_agent.app.tool_sources import FixedTools
from hermes_agent.core.effects import Effect
from hermes_agent.core.forms import Field
from hermes_agent.core.messages import File, Image, Text
from hermes_agent.core.tool import CallContext, Question, tool
from hermes_agent.mcp_server.adapter import block_of, schema_of, server_of
from tests.mcp_server.clients import ERAS
from tests.mcp_server.fixture_offer import FixtureOffer

NAME = Question(text="Who?", fields=(Field(name="name", required=True), Field(name="age", type="integer", default="7")))


class Odd:
    @tool(effect=Effect.READS)
    async def breaks(self) -> str:
        """Break."""
        raise ZeroDivisionError("secret words")

    @tool(effect=Effect.READS)
    async def greets(self, context: CallContext) -> str:
        """Ask two things."""
        form = await context.ask(NAME)
        return f"{form} {await context.ask(Question(text='Sure?', choices=('yes', 'no')))}"


class OddOffer(FixtureOffer):
    def tools(self) -> dict:
        return {each.schema.name: each for each in FixedTools([Odd()]).tools("", ())}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("accepts", [True, False])
async def test_a_tool_asks_the_clients_person_by_forms(era: str, accepts: bool):
    asked: list[dict] = []

    async def answer(_: object, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        asked.append(dict(params.requested_schema))
        content = {"name": "Ann"} if len(asked) == 1 else {"answer": "yes"}
        return types.ElicitResult(action="accept" if accepts else "decline", content=content if accepts else None)

    async with Client(server_of(OddOffer()), mode=era, elicitation_callback=answer) as mcp:
        result = await mcp.call_tool("greets", {})

    assert result.content[0].text == ('{"name": "Ann"} yes' if accepts else " ")
    assert asked[0]["properties"] == {"name": {"type": "string"}, "age": {"type": "integer", "default": 7}}
    assert asked[0]["required"] == ["name"]
    assert asked[1]["properties"]["answer"]["enum"] == ["yes", "no"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_without_forms_is_asked_nothing(era: str):
    async with Client(server_of(OddOffer()), mode=era) as mcp:
        result = await mcp.call_tool("greets", {})

    assert result.is_error
    assert result.content[0].text == "The client cannot ask its person."


@pytest.mark.parametrize("era", ERAS)
async def test_a_defect_is_an_apology_and_an_unknown_tool_an_error(era: str):
    async with Client(server_of(OddOffer()), mode=era) as mcp:
        result = await mcp.call_tool("breaks", {})
        with pytest.raises(MCPError, match="There is no tool 'nothing' for you here"):
            await mcp.call_tool("nothing", {})

    assert result.is_error
    assert "secret" not in result.content[0].text


def test_choices_have_their_names():
    field = Field(name="a", title="A", type="choices", choices=("x", "y"), labels=("X!", "Y!"), default='["x"]')
    found = schema_of(Question(text="", fields=(field,)))["properties"]["a"]

    titled = [{"const": "x", "title": "X!"}, {"const": "y", "title": "Y!"}]
    assert found == {"title": "A", "type": "array", "items": {"anyOf": titled}, "default": ["x"]}


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (Text(text="a"), {"type": "text", "text": "a"}),
        (Image(data="YQ=="), {"type": "image", "data": "YQ==", "mimeType": "image/png"}),
        (Image(url="https://x/a.png"), {"type": "text", "text": "https://x/a.png"}),
        (
            File(name="a", media_type="audio/wav", data="YQ=="),
            {"type": "audio", "data": "YQ==", "mimeType": "audio/wav"},
        ),
        (
            File(name="a.txt", media_type="text/plain", data="YQ=="),
            {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "a"}},
        ),
        (
            File(name="a.pdf", media_type="application/pdf", data="YQ=="),
            {"type": "resource", "resource": {"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": "YQ=="}},
        ),
    ],
)
def test_parts_become_content(part: Text | Image | File, block: dict):
    assert json.loads(block_of(part).model_dump_json(by_alias=True, exclude_none=True)) == block
