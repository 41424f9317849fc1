"""Scenario files, read or refused."""

from __future__ import annotations

import pytest

from hermes_agent.providers.demo.scenario import BadScenario, read_tasks, shipped_tasks


def test_the_shipped_scenarios_are_good():
    assert len(shipped_tasks()) >= 4


def test_a_file_may_hold_several_tasks():
    one = "can: a\nwhen: a\nsteps: [{say: a}]\n"

    assert [task.can for task in read_tasks(f"{one}---\n{one}", "two")] == ["a", "a"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("can: a\nwhen: '('\nsteps: []", "no regular expression"),
        ("can: a\nsteps: []", "'when' is missing"),
        ("can: a\nwhen: a\nsteps: [{speak: a}]", "step 1: unknown speak; known are calls, say, think, when"),
        ("can: a\nwhen: a\nsteps: [{when: {tools: a}}]", "unknown tools"),
        ("can: a\nwhen: a\nsteps: [words]", "expected keys and values"),
        ("can: a\nwhen: a\nstep: []", "unknown step"),
        ("can: [", "bad.yaml"),
    ],
)
def test_a_bad_file_is_refused_with_the_place(text, words):
    with pytest.raises(BadScenario, match=words) as caught:
        read_tasks(text, "bad.yaml")

    assert "bad.yaml" in str(caught.value)
