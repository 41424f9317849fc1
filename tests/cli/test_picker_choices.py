"""Choosing one of many while typing."""

from __future__ import annotations

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from hermes_agent.cli.picker import run
from hermes_agent.cli.picker_choices import SHOWN, Choice, Narrowed, best

CHOICES = [
    Choice(name="anthropic/claude", about="1,000,000 tokens"),
    Choice(name="openrouter/anthropic/claude", about="1,000,000 tokens"),
    Choice(name="deepseek/v4", about="cheap"),
    Choice(name="demo/scripted"),
]
UP, DOWN, ENTER, ESCAPE, CTRL_C = "\x1b[A", "\x1b[B", "\r", "\x1b", "\x03"


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("", ["anthropic/claude", "openrouter/anthropic/claude", "deepseek/v4", "demo/scripted"]),
        ("CLAUDE router", ["openrouter/anthropic/claude"]),
        ("de", ["demo/scripted", "deepseek/v4", "anthropic/claude", "openrouter/anthropic/claude"]),
        ("cheap", ["deepseek/v4"]),
        ("nothing", []),
    ],
)
def test_every_word_must_fit_and_beginnings_come_first(typed: str, names: list[str]) -> None:
    state = Narrowed(CHOICES)
    state.type(typed)
    assert [each.name for each in state.found] == names


def lines(state: Narrowed) -> list[str]:
    return "".join(text for _, text, *_ in state.rows(60)).split("\n")


def test_the_mark_stays_in_the_list_and_in_sight() -> None:
    state = Narrowed([Choice(name=f"m{number:02}") for number in range(40)])
    state.move(-3)
    assert state.chosen.name == "m00"
    state.move(100)
    assert lines(state)[-2:] == ["> m39", "  40 fit"]
    assert len(lines(state)) == SHOWN + 1
    state.type("m05")
    assert lines(state)[0] == "> m05"
    state.type("x")
    assert (state.chosen, lines(state)) == (None, [" (nothing fits)"])


def test_by_name_what_is_typed_whole_comes_first_and_letters_apart_do_not_fit() -> None:
    state = Narrowed([Choice(name=name) for name in ("/queue", "/quit", "/q", "/undo")], by_name=True)
    state.type("/q")
    assert [each.name for each in state.found] == ["/q", "/queue", "/quit"]
    state.type("/qt")
    assert state.chosen is None


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        (ENTER, "anthropic/claude"),
        (DOWN + DOWN + ENTER, "deepseek/v4"),
        (DOWN + UP + ENTER, "anthropic/claude"),
        ("scrip" + ENTER, "demo/scripted"),
        ("xyz" + ENTER + "\x7f\x7f\x7f" + "deep" + ENTER, "deepseek/v4"),
        (CTRL_C, None),
        (ESCAPE, None),
    ],
)
def test_typing_narrows_and_enter_chooses(keys: str, chosen: str | None) -> None:
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        picked = run("Which?", Narrowed(CHOICES), keys=pipe, output=DummyOutput())
    assert (picked and picked.name) == chosen


def test_the_marked_line_is_shown_as_such() -> None:
    shown = Narrowed(CHOICES[2:]).rows(40)
    assert [style for style, text, *_ in shown if text.startswith(("> deepseek/v4", "  demo"))] == ["reverse", ""]


PATHS = ["src/app.py", "src/apple/pie.md", "tests/test_app.py", "docs/a_long_page.md", "src/mapper.py"]


def found(query: str) -> list[str]:
    return [PATHS[place] for place in best(query, PATHS)]


def test_the_beginning_of_a_name_comes_before_the_middle():
    assert found("app")[:2] == ["src/app.py", "tests/test_app.py"]
    assert found("app")[-1] == "src/mapper.py"


def test_letters_in_their_order_are_enough_where_they_are_near():
    assert found("alongp") == ["docs/a_long_page.md"]
    assert found("xq") == []
    assert best("model", ["mxxoxxdxxexxl"]) == []


def test_every_word_must_fit_and_nothing_typed_fits_all():
    assert found("tests app") == ["tests/test_app.py"]
    assert found("") == PATHS


def test_five_thousand_are_searched_within_a_frame():
    names = [f"vendor-{n % 40}/model-{n}-instruct" for n in range(5_000)]
    assert [names[place] for place in best("mo4999", names)] == ["vendor-39/model-4999-instruct"]
