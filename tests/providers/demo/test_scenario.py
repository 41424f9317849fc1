"""Scenario files."""

from importlib.resources import files

import pytest
import yaml

from hermes_agent.providers.demo.scenario import FOLDER, read_tasks, shipped_tasks

KNOWN = {"can", "when", "message", "facts", "steps"}
OF_OPTION, OF_WHEN = {"think", "say", "calls", "when"}, {"tool", "result", "told"}
SHIPPED = sorted(
    entry.read_text("utf-8")
    for entry in (files("hermes_agent.providers.demo") / FOLDER).iterdir()
    if entry.name.endswith(".yaml")
)


@pytest.mark.parametrize("text", SHIPPED, ids=range(len(SHIPPED)))
def test_the_shipped_scenarios_say_nothing_that_is_not_read(text: str):
    for task in yaml.safe_load_all(text):
        assert set(task) <= KNOWN
        for step in task["steps"]:
            assert "either" not in step or set(step) == {"either"}
            for option in step.get("either", (step,)):
                assert set(option) <= OF_OPTION
                assert set(option.get("when", {})) <= OF_WHEN


def test_the_shipped_scenarios_are_read():
    assert len(shipped_tasks()) >= 4


def test_a_file_may_hold_several_tasks():
    one = "can: a\nwhen: a\nsteps: [{say: a}]\n"

    assert [task.can for task in read_tasks(f"{one}---\n{one}", "two")] == ["a", "a"]
