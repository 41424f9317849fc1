"""Which tools a prompt offers, how the others are found, and what a wrong name gets."""

from __future__ import annotations

import asyncio

import pytest

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import BadArguments, UnknownTool
from hermes_agent.core.tool import tool
from hermes_agent.tools.schema import collect, from_function
from hermes_agent.tools.toolbox import PassingTools, Toolbox, ranked
from tests.tools.bench import Context, words

TOOLS = tuple(
    from_function(name, lambda: "", description)
    for name, description in (
        ("calendar_create_event", "Put an event into a calendar."),
        ("calendar_list_events", "Show what is in the calendar between two days."),
        ("image_generate", "Draw a picture from a description."),
        ("text_to_speech", "Say a text aloud and save the audio."),
        ("kanban_create", "Put a task on the board."),
    )
)


def names(query: str) -> list[str]:
    return [tool.schema.name for tool in ranked(query, TOOLS)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create events", "calendar_create_event"),
        ("draw pictures", "image_generate"),
        ("speech", "text_to_speech"),
        ("add a task to the kanban board", "kanban_create"),
        ("listing calendar", "calendar_list_events"),
    ],
)
def test_the_tool_that_fits_comes_first(query: str, first: str) -> None:
    assert names(query)[0] == first


def test_what_shares_no_word_is_not_found() -> None:
    assert names("weather in Ulm") == []


def test_no_tools_are_no_error() -> None:
    assert ranked("anything", ()) == []


class Kitchen:
    @tool(effect=Effect.READS)
    async def taste(self, dish: str) -> str:
        """Taste a dish."""
        return f"{dish} is salty"

    @tool(effect=Effect.WRITES, needs=(Capability.NET,), core=False)
    async def order_pizza(self, topping: str) -> str:
        """Order a pizza to be delivered."""
        return f"pizza with {topping}"

    @tool(effect=Effect.READS, needs=(Capability.MESSAGE,), core=False)
    async def read_mail(self, folder: str = "inbox") -> str:
        """List the messages of a mail folder."""
        return folder


def kitchen() -> Toolbox:
    return Toolbox(collect([Kitchen()])[0])


def test_core_tools_are_offered_and_two_doors_to_the_others() -> None:
    assert [schema.name for schema in kitchen().offered] == ["taste", "find_tools", "use_tool"]


def test_without_other_tools_there_are_no_doors() -> None:
    core = [found for found in collect([Kitchen()])[0] if found.schema.name == "taste"]

    assert [schema.name for schema in Toolbox(core).offered] == ["taste"]


def test_an_unknown_tool_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(UnknownTool) as caught:
        kitchen().get("order_piza")

    assert caught.value.hint == "Did you mean `order_pizza`?"


@pytest.mark.parametrize(("query", "first"), [("pizza delivery", "order_pizza"), ("messages in my mail", "read_mail")])
async def test_find_tools_shows_the_tool_that_fits_with_its_parameters(query: str, first: str) -> None:
    answer = await kitchen().get("find_tools").run({"query": query}, Context("/"))

    assert words(answer).splitlines()[0].startswith(f'{{"name":"{first}"')
    assert '"parameters"' in words(answer)


async def test_use_tool_calls_what_was_found() -> None:
    arguments = {"name": "order_pizza", "arguments": {"topping": "olives"}}

    answer = await kitchen().get("use_tool").run(arguments, Context("/"))

    assert words(answer) == "pizza with olives"


def test_a_call_of_use_tool_has_the_facts_of_what_it_uses() -> None:
    box = kitchen()

    found, arguments = box.resolve("use_tool", {"name": "order_pizza", "arguments": '{"topping": "olives"}'})

    assert found.needs == {Capability.NET}
    assert arguments == {"topping": "olives"}
    facts = box.get("use_tool").facts({"name": "order_pizza", "arguments": {"topping": "x"}}, "/")
    assert facts.effect is Effect.WRITES


def test_use_tool_by_itself_needs_all_that_its_tools_need() -> None:
    assert kitchen().get("use_tool").needs == {Capability.NET, Capability.MESSAGE}


def test_wrong_arguments_inside_use_tool_are_answered_with_the_path() -> None:
    with pytest.raises(BadArguments, match=r"order_pizza.*`\$`"):
        kitchen().get("use_tool").facts({"name": "order_pizza", "arguments": {}}, "/")


def test_many_tools_that_come_and_go_are_counted_by_what_their_names_begin_with():
    few = [from_function(f"mcp__a__{n}", lambda: "", "Does it.", ()) for n in range(3)]
    many = [from_function(f"mcp__b__{n}", lambda: "", "Does it.", ()) for n in range(30)]

    async def told(tools, news=""):
        return await PassingTools(Toolbox((), found=lambda: tools), lambda _: news).words("s", "")

    assert asyncio.run(told(few)).endswith("mcp__a__0, mcp__a__1, mcp__a__2.")
    assert asyncio.run(told([*few, *many])).endswith("calls them: mcp__a__* (3), mcp__b__* (30).")
    assert asyncio.run(told(few, "These changed.")).endswith("mcp__a__2.\nThese changed.")


def test_what_came_is_found_and_what_went_is_not():
    now = [(from_function("plant", lambda: "", "Plants a tree.", ()),)]
    box = Toolbox((), found=lambda: now[0])
    assert [tool.schema.name for tool in box.find("tree")] == ["plant"]

    now[0] = (from_function("fell", lambda: "", "Fells a tree.", ()),)

    assert [tool.schema.name for tool in box.find("tree")] == ["fell"]
