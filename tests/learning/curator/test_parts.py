"""The small parts of a pass: journal, plan, past queries, overlaps, rubric, report."""

from pathlib import Path

import msgspec
import pytest

from hermes_agent.core.errors import BadArguments, HermesError, HomeError
from hermes_agent.core.events import Entry, MessageTaken, Replied
from hermes_agent.core.messages import Message, Origin, Role, StopReason, Text, ToolCall, Usage
from hermes_agent.learning.curator import report
from hermes_agent.learning.curator.applying import calls_of, together
from hermes_agent.learning.curator.history import QueryHistory, covered_by, groups, lost, queries_in, shared, that_find
from hermes_agent.learning.curator.plan import (
    Denied,
    JournalFile,
    Move,
    Plan,
    Step,
    brought_back,
    keep,
    kept,
    kept_apart,
    paused,
)
from hermes_agent.learning.curator.tools import CRITERIA, checked, grade, missing_files, system

# Notebook


async def test_a_notebook_keeps_what_was_said_and_a_broken_one_is_told(tmp_path: Path):
    file = JournalFile(tmp_path / "skills")
    assert not file.get().paused
    await file.change(paused(True))
    await file.change(kept_apart([("b", "a"), ("a", "b")]))
    await file.change(brought_back(["a"], 5.0))
    found = file.get()
    assert (found.paused, found.apart, found.since) == (True, (("a", "b"),), {"a": 5.0})
    file.path.write_text("{")
    with pytest.raises(HomeError, match="cannot be read"):
        file.get()


# Plan

PLAN = Plan(job="j", at=1.0, looks=False)


def test_a_plan_is_there_whole_or_not_at_all(tmp_path: Path):
    assert kept(tmp_path) is None
    keep(PLAN, tmp_path / "run")
    assert kept(tmp_path / "run") == PLAN
    (tmp_path / "run/plan.json").write_text('{"job": "j"')
    assert kept(tmp_path / "run") is None


def test_a_step_says_what_it_touches():
    join = Step(number=1, kind="join", name="a", absorbs={"b": "h"}, changes={"SKILL.md": b"x", "assets/p": b"\0"})
    aside = Step(number=2, kind="unused", name="c", base="h")
    assert (join.touched, join.gone, aside.touched, aside.gone) == (("a", "b"), ("b",), ("c",), ("c",))
    assert [each["action"] for each in calls_of(join)] == ["create", "delete"]
    assert together(join, [join, aside]) == [join]
    more = Step(number=3, kind="patch", name="b")
    assert together(join, [join, more]) == [more, join]


# Past queries


def entry(number: int, event: MessageTaken | Replied) -> Entry:
    return Entry(number=number, run="r", at=float(number), event=event)


def heard(text: str, *, inbox: int = 1, origin: Origin = Origin.OWNER) -> MessageTaken:
    return MessageTaken(message=Message(role=Role.USER, parts=(Text(text=text, origin=origin),)), inbox=inbox)


def calls(*named: tuple[str, dict[str, str]]) -> Replied:
    parts = tuple(ToolCall(id=str(n), name=name, arguments=given) for n, (name, given) in enumerate(named))
    return Replied(
        turn=1,
        call_id="c",
        message=Message(role=Role.ASSISTANT, parts=parts),
        stop=StopReason.TOOL_CALLS,
        usage=Usage(),
        provider="p",
        model="m",
        cost=None,
        seconds=0.0,
    )


def test_a_query_is_what_was_said_or_looked_for_before_a_skill_was_loaded():
    log = [
        entry(1, heard("make some tea")),
        entry(2, heard("a note of the runtime", inbox=0)),
        entry(3, calls(("skills_list", {"query": "brew"}), ("terminal", {"command": "ls"}))),
        entry(4, calls(("skill_view", {"name": "make-tea"}))),
        entry(5, heard("coffee")),
        entry(6, calls(("skill_view", {"name": "make-coffee"}), ("skill_view", {}))),
        entry(7, heard("what the page says", origin=Origin.WEB)),
        entry(8, calls(("skill_view", {"name": "other"}))),
    ]
    assert [(past.query, past.skill, past.shown) for past in queries_in(log)] == [
        ("make some tea", "make-tea", 5),
        ("brew", "make-tea", 10),
        ("", "make-coffee", 5),
        ("", "other", 5),
    ]


async def test_a_query_is_lost_that_finds_neither_its_skill_nor_what_covers_it():
    past = [QueryHistory(query=name, skill=name, shown=5) for name in ("a", "b", "c")]

    async def finds(query: str, shown: int) -> list[str]:
        assert shown == 5
        return {"a": ["z"], "b": ["b"]}.get(query, [])

    assert await that_find(past, finds) == [past[1]]
    assert await lost(past, finds, {"a": "y", "y": "z"}, {"c"}) == []
    assert await lost(past, finds, {}, ()) == [past[0], past[2]]
    assert covered_by("a", {"a": "b", "b": "a"}) in {"a", "b"}


# Overlaps, rubric


def test_skills_of_the_same_words_are_a_group_unless_a_person_keeps_them_apart():
    texts = {"a": "boil water pour leaves", "b": "boil water pour leaves wait", "c": "grind beans"}
    assert groups(texts) == [["a", "b"]]
    assert groups(texts, [("a", "b")]) == []
    assert shared((), ()) == 0.0


def test_a_grade_is_the_sum_of_all_points_and_nothing_else():
    assert [grade(checked(dict.fromkeys(CRITERIA, each))) for each in (2, 1, 0)] == ["A", "C", "D"]
    for wrong in ({"trigger": 2}, dict.fromkeys(CRITERIA, 3), {**dict.fromkeys(CRITERIA, 1), "total": 2}):
        with pytest.raises(BadArguments):
            checked(wrong)
    assert all(name in system() for name in CRITERIA)


def test_files_that_a_skill_names_and_does_not_have_are_found():
    assert missing_files("See references/a.md and scripts/b.sh. Not x/references/c.", ["scripts/b.sh"]) == [
        "references/a.md"
    ]


# Report

STEP = Step(number=1, kind="patch", name="a", changes={"SKILL.md": b"new\n"}, why="It was unclear.")


def test_what_left_no_version_was_not_done_whatever_was_planned():
    assert report.changed(STEP.came("done"), []).state == "skipped"


def test_a_report_names_everything_that_there_is_to_name(tmp_path: Path):
    plan = Plan(
        job="j",
        at=1.0,
        looks=True,
        moves=(Move(name="a", was="active", now="stale", days=31),),
        groups=(("a", "b"),),
        denied=(Denied(call="skill_manage delete a", reason="No."),),
        failed="The model is gone.",
    )
    changes = [report.would(STEP, {"a/SKILL.md": b"old\n" * 300})]
    run = msgspec.structs.replace(report.run_of("1", plan, changes, 2.0), calls=1, cost=None)
    text = report.markdown(run)
    for words in (
        "only reported",
        "active -> stale",
        "a, b",
        "skill_manage delete a: No.",
        "gone",
        "-old",
        "lines more",
    ):
        assert words in text
    assert "price unknown" in text
    report.keep(run, tmp_path / "1")
    (tmp_path / "2").mkdir()
    (tmp_path / "3").mkdir()
    (tmp_path / "3/run.json").write_text("{")
    assert report.all_kept(tmp_path) == [run]
    assert report.one_kept(tmp_path, "") == report.one_kept(tmp_path, "1") == run
    for name, words in (("2", "knows 1"), ("", "")):
        with pytest.raises(HermesError, match=words or "No pass has ended"):
            report.one_kept(tmp_path if name else tmp_path / "none", name)
