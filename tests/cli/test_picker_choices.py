"""Choosing one of many while typing."""

from __future__ import annotations

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from hermes_agent.cli.picker import fragments, run
from hermes_agent.cli.picker_choices import SHOWN, Choice, Narrowed, matching

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
        ("de", ["deepseek/v4", "demo/scripted", "anthropic/claude", "openrouter/anthropic/claude"]),
        ("cheap", ["deepseek/v4"]),
        ("nothing", []),
    ],
)
def test_every_word_must_fit_and_beginnings_come_first(typed: str, names: list[str]) -> None:
    assert [each.name for each in matching(CHOICES, typed)] == names


def test_the_mark_stays_in_the_list_and_in_sight() -> None:
    state = Narrowed([Choice(name=f"m{number:02}") for number in range(40)])
    state.move(-3)
    assert state.chosen.name == "m00"
    state.move(100)
    lines = state.lines()
    assert (len(lines), lines[-1]) == (SHOWN, (True, "m39"))
    state.type("m05")
    assert [line for _, line in state.lines()] == ["m05"]
    state.type("x")
    assert (state.chosen, state.lines()) == (None, [(False, "(nothing fits)")])


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
    shown = fragments(Narrowed(CHOICES[2:]))
    assert shown == [("reverse", "> deepseek/v4    cheap\n"), ("", "  demo/scripted\n")]
