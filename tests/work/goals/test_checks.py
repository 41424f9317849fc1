"""Criteria are checked behind the wall, and what was begun is not begun again."""

from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Say
from hermes_agent.sandbox.place import Command
from hermes_agent.store.work.goals import Criterion, Goal, Kind
from hermes_agent.testing.clock import FakeClock
from hermes_agent.work.goals.checks import Checker
from hermes_agent.work.goals.desk import criterion_of
from tests.app.place import place
from tests.work.goals.harness import work_of


def goal(folder: Path, *criteria: Criterion) -> Goal:
    return Goal(id="g_000001", principal="owner", text="x", created=1.0, criteria=criteria, folder=str(folder))


@pytest.fixture
async def checker(tmp_path: Path):
    async with place(tmp_path, [Say("x")]) as there:
        yield work_of(there).desk.checker


async def verdicts(checker: Checker, folder: Path, *criteria: Criterion, name: str = "n") -> list[str]:
    return [each.verdict for each in await checker.facts(goal(folder, *criteria), name)]


async def test_a_file_is_there_contains_a_text_or_has_a_hash(checker: Checker, tmp_path: Path):
    folder = tmp_path / "work"
    (folder / "it's.txt").write_text("one\ntwo -x\n")
    digest = "4a1d4d2d3ee9e2e1b4d0e5d6fbe6d3b0f6a94cf6fa3bcb1e4b1fd6ec0d8b5a10"
    good = [criterion_of("file", each) for each in ("it's.txt", "it's.txt contains two -x")]
    bad = [criterion_of("file", each) for each in ("no.txt", "it's.txt contains three", f"it's.txt sha256 {digest}")]

    assert await verdicts(checker, folder, *good, *bad) == ["met", "met", "unmet", "unmet", "unmet"]


async def test_a_hash_is_compared(checker: Checker, tmp_path: Path):
    (tmp_path / "work" / "empty").touch()
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    assert await verdicts(checker, tmp_path / "work", criterion_of("file", f"empty sha256 {empty.upper()}")) == ["met"]


async def test_a_receipt_has_the_exit_code_and_the_end_of_the_output(checker: Checker, tmp_path: Path):
    text = Criterion(kind=Kind.COMMAND, text="seq 5000; echo END; exit 7")

    (receipt,) = await checker.facts(goal(tmp_path / "work", text), "n")

    assert receipt.exit_code == 7
    assert receipt.evidence.endswith("4999\n5000\nEND")
    assert len(receipt.evidence) <= 2_000
    assert receipt.output_hash


async def test_a_command_that_was_begun_under_its_id_is_waited_for_and_not_begun_again(
    checker: Checker, tmp_path: Path
):
    folder = tmp_path / "work"
    text = "echo x >> count; sleep 0.2"
    begun = await checker.place.start("goal/n-0", Command(text=text, folder=str(folder)))

    assert await verdicts(checker, folder, Criterion(kind=Kind.COMMAND, text=text)) == ["met"]
    await begun.wait()
    assert (folder / "count").read_text() == "x\n"


async def test_criteria_that_only_read_are_checked_side_by_side_and_others_one_by_one(checker: Checker, tmp_path: Path):
    (tmp_path / "log").write_text("x")
    reading = tuple(Criterion(kind=Kind.COMMAND, text=text) for text in ("cat log", "test -e log", "grep -q y log"))
    writing = tuple(Criterion(kind=Kind.COMMAND, text=f"cat log; echo {name} > log") for name in "ab")
    goal = Goal(id="g_1", principal="o", text="x", created=1.0, criteria=(*writing, *reading), folder=str(tmp_path))

    checks = await checker.facts(goal, "g_1-1")

    assert [each.verdict for each in checks] == ["met", "met", "met", "met", "unmet"]
    assert [each.evidence for each in checks[:3]] == ["x", "a", "x"]


async def test_a_command_that_takes_too_long_is_ended_and_not_met(checker: Checker, tmp_path: Path):
    short = Checker(place=checker.place, clock=FakeClock(), redact=str, seconds=0.3)

    assert await verdicts(short, tmp_path / "work", Criterion(kind=Kind.COMMAND, text="sleep 30")) == ["unmet"]


async def test_a_command_stands_behind_the_wall(checker: Checker, tmp_path: Path):
    text = f"cat {tmp_path}/home/config.yaml"

    assert await verdicts(checker, tmp_path / "work", Criterion(kind=Kind.COMMAND, text=text)) == ["unmet"]


async def test_a_card_is_met_when_it_is_done(tmp_path: Path, checker: Checker):
    async def card(whose: str, name: str) -> str:
        assert whose == "owner"
        return {"t_1": "done", "t_2": "ready"}.get(name, "")

    board = Checker(place=checker.place, clock=FakeClock(), redact=str, seconds=1, card=card)
    cards = [Criterion(kind=Kind.BOARD, text=f"t_{number}") for number in (1, 2, 3)]

    checks = await board.facts(goal(tmp_path, *cards), "n")

    assert [(each.verdict, each.evidence) for each in checks] == [
        ("met", "the card is done"),
        ("unmet", "the card is ready"),
        ("impossible", "no such card"),
    ]


@pytest.mark.parametrize("begin", ["true", "git init -q && git config user.email a@b && git config user.name a"])
async def test_the_state_of_a_folder_changes_with_its_files(checker: Checker, tmp_path: Path, begin: str):
    folder = tmp_path / "work"
    (folder / "a.txt").write_text("1")
    running = await checker.place.start("goal/begin", Command(text=begin, folder=str(folder)))
    await running.wait()

    one, same = [await checker.folder(goal(folder), name) for name in ("a", "b")]
    (folder / "a.txt").write_text("2")
    other = await checker.folder(goal(folder), "c")

    assert one == same
    assert one != other
