"""A settings text, checked: what is wrong, where, and what belongs there."""

from __future__ import annotations

import pytest

from hermes_agent.host.schema import Checked, build
from hermes_agent.host.yaml_check import check
from tests.host.settings_for_tests import Settings


def checked(text: str) -> Checked:
    return check(text.encode(), Settings, "config.yaml")


def only_problem(result: Checked) -> str:
    assert len(result.problems) == 1, result.problems
    problem = result.problems[0]
    return f"{problem.line}: {problem.text}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agent:\n  max_turn: 5\n", "2: unknown setting `agent.max_turn`. Did you mean `agent.max_turns`?"),
        ("max_turns: 5\n", "1: unknown setting `max_turns`. Did you mean `agent.max_turns`?"),
        ("modle: {}\n", "1: unknown setting `modle`. Did you mean `model`?"),
        ("zzzzqqqq: 1\n", "1: unknown setting `zzzzqqqq`. `hermes config show --all` lists the settings."),
        ("<<: {jailed: true}\n", "1: unknown setting `<<`. `hermes config show --all` lists the settings."),
        (
            "agent:\n  max_turns: many\n",
            "2: `agent.max_turns` takes a whole number from 1 to 1000, but `many` stands here.",
        ),
        (
            'agent: {max_turns: "5"}\n',
            "1: `agent.max_turns` takes a whole number from 1 to 1000, but the text `5` stands here.",
        ),
        ("agent: {max_turns: 0}\n", "1: `agent.max_turns` takes a whole number from 1 to 1000, but `0` stands here."),
        (
            "agent: {max_turns: 010}\n",
            "1: `agent.max_turns` takes a whole number from 1 to 1000, but `010` stands here.",
        ),
        (
            "agent: {max_turns: 1:30}\n",
            "1: `agent.max_turns` takes a whole number from 1 to 1000, but `1:30` stands here.",
        ),
        (
            "agent: {max_turns: 5.5}\n",
            "1: `agent.max_turns` takes a whole number from 1 to 1000, but `5.5` stands here.",
        ),
        (
            "agent: {max_money: .nan}\n",
            "1: `agent.max_money` takes a number, at least 0 (or nothing), but `.nan` stands here.",
        ),
        ("jailed: 1\n", "1: `jailed` takes true or false, but `1` stands here."),
        ("jailed: !!bool maybe\n", "1: `jailed` takes true or false, but `maybe` stands here."),
        ("jailed:\n", "1: `jailed` is empty; it takes true or false. Take the line out for the default."),
        ("agent: {busy: wait}\n", "1: `agent.busy` takes one of steer, queue, but `wait` stands here."),
        ("reach: sum\n", "1: `reach` takes one of some, on, true or false, or a list of texts, but `sum` stands here."),
        ("reach: 1\n", "1: `reach` takes one of some, on, true or false, or a list of texts, but `1` stands here."),
        (
            "reach: [{a: 1}]\n",
            "1: `reach` takes one of some, on, true or false, or a list of texts, but a list stands here.",
        ),
        ("toolsets: core\n", "1: `toolsets` takes a list of texts, but `core` stands here."),
        ("toolsets: [[a]]\n", "1: `toolsets` takes a list of texts, but a list stands here."),
        ("model: gpt\n", "1: `model` is a section, but `gpt` stands here."),
        ("- a\n- b\n", "1: the file is a section, but a list (`a, b`) stands here."),
        (
            "servers:\n  a: {base_url: x, headers: {h: [1]}}\n",
            "2: `servers.a.headers.h` takes a text, but a list (`1`) stands here.",
        ),
        ("servers:\n  a: {url: x}\n", "2: unknown setting `servers.a.url`. Did you mean `servers.a.base_url`?"),
        ("jailed: true\n\njailed: false\n", "3: `jailed` stands twice, first in line 1."),
        ("jailed: {a: 1\n", "2: not valid YAML: did not find expected ',' or '}'."),
        ("jailed: true\n---\njailed: false\n", "2: not valid YAML: but found another document."),
        ("jailed: *other\n", "1: not valid YAML: found undefined alias."),
        ("jailed: true\n\tagent: 1\n", "2: not valid YAML: found a tab character that violates indentation."),
        ("? [a]\n: 1\n", "1: the file has a name that is not a plain word."),
        ("jailed: true".encode("utf-16"), "0: this is UTF-16; save it as UTF-8."),
        (b"jailed: true\n# caf\xe9\n", "2: a byte here is not UTF-8; save the file as UTF-8."),
        (b"jailed: true\x00\n", "0: not valid YAML: control characters are not allowed."),
        ("extra: &a {again: *a}\n", "1: `extra` is nested too deeply or has too many entries."),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_belongs_there(text: str | bytes, said: str) -> None:
    result = check(text if isinstance(text, bytes) else text.encode(), Settings, "config.yaml")

    assert only_problem(result) == said


@pytest.mark.parametrize(
    ("text", "value"),
    [("some", "some"), ("on", "on"), ("off", False), ("true", True), ("[a, 'b:1']", ("a", "b:1")), ("[]", ())],
)
def test_a_word_a_truth_and_a_list_stand_in_one_setting(text: str, value: object) -> None:
    found = checked(f"reach: {text}\n")

    assert found.problems == ()
    assert build(Settings, found.values).reach == value


def test_an_alias_bomb_is_cut_off() -> None:
    rows = ["  a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]

    result = checked("extra:\n" + "\n".join(rows) + "\n")

    assert "too many entries" in only_problem(result)


def test_a_deep_nest_is_a_problem_not_a_crash() -> None:
    flow = checked("extra: " + "[" * 300_000)
    block = checked("extra:\n  " + "- " * 300_000)

    assert only_problem(flow) == "1: not valid YAML: nested too deeply."
    assert only_problem(block) == "2: not valid YAML: nested too deeply."
