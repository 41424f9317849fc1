"""The options before a subcommand, read without click exactly as click reads them."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from hypothesis import given, settings, strategies as st

from hermes_agent.cli.group import hermes
from hermes_agent.cli.options import OPTIONS, RESULT, Invocation, parse, recording_of, step_of
from hermes_agent.core.errors import CassetteError
from hermes_agent.replay.recorder import Recorder

WORDS = st.one_of(
    st.sampled_from([flag for option in OPTIONS for flag in option.flags]),
    st.sampled_from(
        ["-qc", "-cz", "-zx", "-z=x", "--oneshot=x=y", "--json=1", "--prof", "-", "--", "config", "", "-é", "--é"]
    ),
    st.text(max_size=3),
)


def as_click_reads(words: list[str]) -> Invocation | None:
    """Click's own reading of the options; None where it takes the line for something else or refuses it."""
    context = click.Context(hermes, info_name="hermes")
    try:
        values, rest, _ = hermes.make_parser(context).parse_args(list(words))
    except click.UsageError:
        return None
    if rest or "help" in values or "version" in values:
        return None
    return Invocation(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=4))
def test_the_quick_reading_is_clicks_reading(words: list[str]) -> None:
    quick = parse(words)

    if RESULT in words:  # Click has another spelling of it.
        assert quick is None or "result" in repr(quick)
    elif quick is not None:
        assert quick == as_click_reads(words)
    elif "--" not in words:
        assert as_click_reads(words) is None


def test_a_question_may_look_like_an_option() -> None:
    assert parse(["-z", "--json"]) == Invocation(question="--json")
    assert parse(["-c", "-mopenai/gpt", "--oneshot=a b"]) == Invocation(go_on=True, model="openai/gpt", question="a b")


def test_the_form_of_the_answer_and_what_is_allowed_stand_before_the_question() -> None:
    read = parse(
        ["--json=result", "--allow", "git push *", "--allow=make", "--file", "a", "--yolo", "-z", "--json=result"]
    )

    assert read == Invocation(
        result=True, allow=("git push *", "make"), files=("a",), yolo=True, question="--json=result"
    )
    assert read.allowed == ("git push *", "make", "*")


def test_a_subcommand_or_a_mistake_is_left_to_click() -> None:
    assert [parse(words) for words in (["config"], ["--help"], ["-x"], ["-z"], ["--json=1"])] == [None] * 5


def test_nothing_is_recorded_without_being_asked_for() -> None:
    assert recording_of(Invocation()) is None


def test_the_options_become_a_tape(tmp_path: Path) -> None:
    assert isinstance(recording_of(Invocation(record=str(tmp_path / "x"))), Recorder)
    with pytest.raises(CassetteError, match="cannot be read"):
        recording_of(Invocation(replay=str(tmp_path / "none")))
    with pytest.raises(CassetteError, match="--replay FILE is missing"):
        recording_of(Invocation(nearest=True))


def test_a_step_is_a_number_from_one() -> None:
    assert (step_of(""), step_of("3")) == (None, 3)
    for text in ("0", "x", "-1"):
        with pytest.raises(CassetteError, match="not a step"):
            step_of(text)
