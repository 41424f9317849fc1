"""The scripted model at work on the project that it ships with."""

from __future__ import annotations

import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from hermes_agent.core.messages import Message, Role, ToolSchema, said
from hermes_agent.providers.demo.play import FOLDER, Player, read_tasks, shipped_tasks
from hermes_agent.providers.demo.server import unpack_project
from tests.providers.demo.hands import TOOLS, Hands, calls, heard, play, result, spoken, words

REPAIR = "Find out which test fails, and fix it."
EXTEND = "Add total_by_category with a test and a line in the changelog."
TWO_STEPS = r"""
can: Say what the command said.
when: 'what does (?P<what>\w+) say'
facts: ['said (?P<answer>\w+)']
steps:
  - calls: [{terminal: {command: '${what} --help'}}]
  - either:
      - when: {tool: terminal, result: 'said'}
        say: It said ${answer}.
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    unpack_project(tmp_path)
    return tmp_path


@pytest.fixture
def player() -> Player:
    return Player(shipped_tasks())


def small() -> Player:
    return Player(read_tasks(TWO_STEPS, "small"))


def test_the_failing_test_is_found_and_repaired(player, project):
    messages, last = play(player, Hands(project), REPAIR)

    tests = subprocess.run(["python3", "-m", "unittest"], cwd=project, capture_output=True, text=True, check=True)
    assert "Ran 6 tests" in tests.stderr
    assert sum(len(message.tool_calls) for message in messages) == 6
    assert (
        "`test_ten_pieces_get_the_first_discount` failed because `bulk_discount` in inventory/pricing.py, line 9"
        in last
    )


def test_the_second_task_is_long_and_does_what_it_says(player, project):
    play(player, Hands(project), REPAIR)
    messages, last = play(player, Hands(project), EXTEND)

    assert sum(len(message.tool_calls) for message in messages) >= 8
    assert "all 7 tests pass, and the stocktake prints tools: 182.70" in last
    assert "total_by_category" in (project / "CHANGELOG.md").read_text()
    assert (project / "stocktake.log").read_text() == "stocktake begun\nstocktake finished\n"


def test_values_come_from_the_results_and_not_from_the_script(player, project):
    pricing = project / "inventory/pricing.py"
    pricing.write_text(f"# moved down\n# by two lines\n{pricing.read_text()}")
    _, last = play(player, Hands(project), REPAIR)

    assert "inventory/pricing.py, line 11" in last


def test_a_project_that_is_whole_needs_no_repair(player, project):
    play(player, Hands(project), REPAIR)
    _, last = play(player, Hands(project), REPAIR)

    assert last == "All 6 tests pass already; there is nothing to repair."


def test_the_same_question_gets_the_same_answer(player):
    question = heard(said(REPAIR))

    assert player.answer(question) == player.answer(question)


def test_an_unknown_question_is_told_that_the_model_is_scripted_and_what_it_can_do(player):
    answer = words(player.answer(heard(said("What is the capital of France?"))))

    assert "scripted model" in answer
    assert "Repair the failing test" in answer


def test_a_question_after_a_finished_task_is_a_new_one(player, project):
    messages, _ = play(player, Hands(project), REPAIR)
    answer = player.answer(heard(*messages, said("And what is the capital of France?")))

    assert "scripted model" in words(answer)


@pytest.mark.parametrize("notice", ["Continue.", "[the run was interrupted and goes on]", "<notice>resumed</notice>"])
def test_a_word_to_go_on_leaves_the_task_as_it_is(notice):
    asked = said("what does make say")
    before = heard(asked)
    spoke = spoken(small().answer(before), before)
    done = result(spoke.tool_calls[0], "make said nothing")
    answer = small().answer(heard(asked, spoke, done, said(notice)))

    assert words(answer) == "It said nothing."


def test_a_step_whose_outcome_is_unknown_is_done_again():
    asked = said("what does make say")
    before = heard(asked)
    spoke = spoken(small().answer(before), before)
    lost = result(spoke.tool_calls[0], "The outcome of this call is unknown: the process ended while it ran.")
    answer = small().answer(heard(asked, spoke, lost))

    assert [call.arguments for call in calls(answer)] == [{"command": "make --help"}]


def test_half_a_reply_without_calls_is_no_step():
    half = Message(role=Role.ASSISTANT, parts=said("I was just abou").parts)
    answer = small().answer(heard(said("what does make say"), half))

    assert calls(answer)


def test_a_result_that_the_script_does_not_know_is_admitted():
    asked = said("what does make say")
    before = heard(asked)
    spoke = spoken(small().answer(before), before)
    answer = small().answer(heard(asked, spoke, result(spoke.tool_calls[0], "command not found")))

    assert "not in my script" in words(answer)


def test_a_tool_that_was_not_given_is_named():
    answer = small().answer(heard(said("what does make say"), tools=TOOLS[1:]))

    assert "needs terminal, which I was not given" in words(answer)


def test_a_task_may_wait_for_the_nth_message():
    player = Player(read_tasks("can: x\nwhen: hello\nmessage: 2\nsteps: [{say: Again?}]", "nth"))
    first = player.answer(heard(said("hello")))
    second = player.answer(heard(said("hello"), Message(role=Role.ASSISTANT, parts=()), said("hello")))

    assert "scripted model" in words(first)
    assert words(second) == "Again?"


def offered(name: str, **parameters: str) -> ToolSchema:
    properties = {each: {"type": kind} for each, kind in parameters.items()}
    return ToolSchema(name=name, description="", parameters={"properties": properties, "required": list(parameters)})


@pytest.mark.parametrize(
    ("message", "tool", "arguments"),
    [
        (
            "Fetch the content from https://example.com.",
            offered("fetch_url", url="string"),
            {"url": "https://example.com"},
        ),
        ("please add 2 and 3.5", offered("add", one="integer", other="number"), {"one": 2, "other": 3.5}),
        ("weather in `Oslo`?", offered("get_weather", city="string"), {"city": "Oslo"}),
    ],
)
def test_a_tool_that_the_message_names_is_called_with_the_values_in_it(player, message, tool, arguments):
    answer = player.answer(heard(said(message), tools=(tool,)))

    assert [(call.name, call.arguments) for call in calls(answer)] == [(tool.name, arguments)]


@pytest.mark.parametrize("message", ["hello", "fetch it", "what is https://example.com?"])
def test_a_tool_that_is_not_named_or_lacks_a_value_is_not_called(player, message):
    answer = player.answer(heard(said(message), tools=(offered("fetch_url", url="string"),)))

    assert calls(answer) == []
    assert "I follow a script" in words(answer)


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
