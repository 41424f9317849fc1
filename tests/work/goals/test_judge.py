"""What the judge is shown, and how its answer is read."""

import json
import random

import pytest

from hermes_agent.core.events import Entry, Replied, ToolEnded
from hermes_agent.core.messages import Message, Role, StopReason, Text, ToolCall, ToolResult, Usage
from hermes_agent.store.work.goals import Criterion, Goal, Kind
from hermes_agent.work.goals.checks import MOST_SHOWN, OWN_WORDS, judged, question_of, records_of

WORDS = Criterion(kind=Kind.JUDGE, text="It reads well.")
GOAL = Goal(id="g_000001", principal="owner", text="Write it.", created=1.0, criteria=(WORDS,))


def result(number: int, text: str = "fine", *, failed: bool = False, tool: str = "terminal") -> Entry:
    part = ToolResult(call_id=f"c{number}", name=tool, parts=(Text(text=text),), is_error=failed)
    message = Message(role=Role.TOOL, parts=(part,))
    event = ToolEnded(turn=1, call_id=f"c{number}", tool=tool, message=message, is_error=failed, seconds=0.1)
    return Entry(number=number, run="r", at=1.0, event=event)


def call(number: int, of: int) -> Entry:
    asked = ToolCall(id=f"c{of}", name="terminal", arguments={"command": "pytest"})
    message = Message(role=Role.ASSISTANT, parts=(asked,))
    event = Replied(
        turn=1,
        call_id="m",
        message=message,
        stop=StopReason.TOOL_CALLS,
        usage=Usage(),
        provider="p",
        model="m",
        cost=None,
        seconds=0.1,
    )
    return Entry(number=number, run="r", at=1.0, event=event)


ENTRIES = [call(1, 2), result(2), result(3, "no such file", failed=True)]


def test_met_needs_numbers_of_successful_results():
    assert judged('{"verdict": "met", "evidence": [2]}', ENTRIES).verdict == "met"
    for evidence in ([], [3], [1], [99], [2, 99], ["2"], None, 2):
        assert judged(json.dumps({"verdict": "met", "evidence": evidence}), ENTRIES).verdict == "unmet"


@pytest.mark.parametrize("tool", sorted(OWN_WORDS))
def test_what_the_agent_wrote_down_itself_is_no_evidence(tool: str):
    entries = [result(2, "All tests pass.", tool=tool)]

    assert judged('{"verdict": "met", "evidence": [2]}', entries).verdict == "unmet"
    assert "All tests pass." not in question_of(GOAL, [WORDS], entries, "")


def test_fabricated_evidence_never_counts():
    chance = random.Random(7)
    verdicts = set()
    for _ in range(1000):
        numbers = [chance.choice([*range(-5, 2), *range(3, 5000)]) for _ in range(chance.randint(0, 4))]
        verdicts.add(judged(json.dumps({"verdict": "met", "evidence": numbers}), ENTRIES).verdict)

    assert verdicts == {"unmet"}


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ('```json\n{"verdict": "unmet", "missing": "All."}\n```', "unmet"),
        ('Here it is: {"verdict": "waiting"} as asked.', "waiting"),
        ('{"verdict": "impossible", "missing": "No."}', "impossible"),
        ('{"verdict": "met", "evidence": [2]', "garbled"),
        ('{"verdict": "yes"}', "garbled"),
        ("It is done.", "garbled"),
        ("[1]", "garbled"),
        ("", "garbled"),
    ],
)
def test_an_answer_in_prose_or_a_fence_is_read_and_a_broken_one_is_garbled(answer: str, verdict: str):
    assert judged(answer, ENTRIES).verdict == verdict


def test_the_question_has_the_goal_its_revision_and_labelled_records():
    text = question_of(GOAL, [WORDS], ENTRIES, "I did it.")

    assert "Goal g_000001, revision 1:\nWrite it." in text
    assert "- It reads well." in text
    assert '[2] ok terminal {"command": "pytest"}: fine' in text
    assert "[3] FAILED terminal: no such file" in text
    assert text.index("(a claim, not a record)") < text.index("I did it.")


def test_the_judge_is_shown_at_most_some_records_the_newest_of_them():
    many = [result(number, "x" * 5000) for number in range(1, 400)]

    text = question_of(GOAL, [WORDS], many, "y" * 100_000)

    assert len(text) < MOST_SHOWN + 8_000
    assert "[399]" in text
    assert "[1]" not in text
    assert "(earlier ones are left out)" in text
    assert len(records_of(many)) == 399
