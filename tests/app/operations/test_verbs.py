"""Verbs: one table for the command line and slash commands."""

from types import SimpleNamespace

import pytest

from hermes_agent.app.operations.access import Access, Argument, Kind, Noun, Verb, say_verb
from hermes_agent.core.chat import Principal
from hermes_agent.core.errors import HermesError

ANN = Access(system=SimpleNamespace(), who=Principal(platform="cli", user="ann"))


async def show(access, number=0, limit=0):
    return [access.who.user, number, limit][: number + 1]


TEA = Noun(
    name="tea",
    short_help="Tea.",
    help="Tea.",
    verbs=(
        Verb(
            name="show",
            help="Show it.",
            act=show,
            arguments=(
                Argument(name="number", kind=Kind.NUMBER, default=0),
                Argument(name="limit", kind=Kind.COUNT, flag="--limit", default=20),
            ),
        ),
        Verb(name="none", help="Nothing.", act=lambda access: show(access, -1), nothing="There is none."),
        Verb(name="pour", help="Pour it.", act=show, arguments=(Argument(name="number", kind=Kind.NUMBER),)),
    ),
)


async def test_a_line_is_read_by_the_verb_s_arguments_and_options_have_their_defaults():
    assert await say_verb(TEA, ANN, []) == "['ann']"
    assert await say_verb(TEA, ANN, ["show", "2"]) == "['ann', 2, 20]"
    assert await say_verb(TEA, ANN, ["none"]) == "There is none."


@pytest.mark.parametrize("line", ["drink", "show x", "show 1 2", "pour"])
async def test_what_is_no_line_of_it_is_told_how_it_is_said(line: str):
    with pytest.raises(HermesError, match=r"Say `/tea show \[NUMBER\]`, `/tea none`, `/tea pour NUMBER`\."):
        await say_verb(TEA, ANN, line.split())
