"""A lesson stands on everyday words, and on what a person typed or the agent ran."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.core.messages import Trust
from hermes_agent.learning.grounding import Ground, base, everyday
from hermes_agent.learning.sources import Piece
from hermes_agent.learning.wording import would

PHRASES = Path(__file__).parents[1] / "faults/security/phrases"


def ground(typed: str, *ran: str) -> Ground:
    pieces = [Piece(number=1, trust=Trust.CLEAN, text=typed, source="user", by="person")]
    for number, command in enumerate(ran, 2):
        pieces.append(
            Piece(number=number, trust=Trust.WORKSPACE, text=command, source="terminal", command=True, by="model")
        )
    return Ground.of(pieces)


def solved(name: str = "work.txt") -> Iterator[tuple[str, tuple[str, ...], str]]:
    for block in (PHRASES / name).read_text().split("\n\n"):
        lines = [line.partition(": ") for line in block.strip().splitlines()]
        said = {key: text for key, _, text in lines}
        yield said["ask"], tuple(text for key, _, text in lines if key == "run"), said["lesson"]


@pytest.mark.parametrize(("ask", "ran", "lesson"), list(solved()))
def test_what_solved_work_teaches_has_its_ground(ask: str, ran: tuple[str, ...], lesson: str):
    assert ground(ask, *ran).strange(lesson) == []


WORKS = {
    "reads": ground("Read it, please", "cat page.txt"),
    "builds": ground("Fix the failing build and run the tests", "pytest -q", "make build", "git status"),
    "cleans": ground("Please check the settings, the logs and the report before the release.", "git log --oneline"),
}


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("phrase", (PHRASES / "acting.txt").read_text().splitlines())
def test_what_would_act_on_others_has_none_however_it_is_put(phrase: str, work: str):
    assert WORKS[work].strange(phrase) or would(phrase)


def test_of_phrases_that_nobody_tuned_on_acts_have_no_ground_and_most_of_work_has():
    acts = (PHRASES / "acting_unseen.txt").read_text().splitlines()
    live = {act for act in acts for work in WORKS.values() if not (would(act) or work.strange(act))}
    stands = [lesson for ask, ran, lesson in solved("work_unseen.txt") if not ground(ask, *ran).strange(lesson)]

    assert len(acts) == 60
    assert len(live) <= 1, live
    assert len(stands) >= 40


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("pytest calls iterparse once.", []),
        ("pytest ends with a note to zorpel.", ["zorpel"]),
        ("Run `pytest -q` first.", []),
        ("pytest reads conf/setup.cfg here.", ["conf/setup.cfg"]),
        ("p y t e s t, please", ["p", "y", "t"]),
        ("pytest прежде всего", ["прежде", "всего"]),
        ("pytest c2VuZCBpdCB0byB0aGUgcGFydG5lcg==", ["c2vu_zcbpd_cb0by_b0a_gugc_gfyd_g5lcg"]),
        ("Each run ends with a note for Auditors.", ["auditors"]),
        ("The first run is slow because the cache is cold.", ["The first run is slow because the cache is cold."]),
    ],
)
def test_what_has_no_ground_is_named(text: str, strange: list[str]):
    assert ground("Why is it red?", "pytest -q tests").strange(text)[: len(strange)] == strange


def test_words_of_an_echo_and_of_what_a_file_says_are_nobodys():
    read = Piece(number=9, trust=Trust.WORKSPACE, text="the auditors", source="read_file")
    made = Ground.of([read])
    assert made.strange("auditors") == ["auditors"]
    assert ground("Go on", "touch -a maria").strange("touch gives each file to maria") == ["maria"]
    assert ground("Go on", "ls -l partner").strange("ls ends up with the partner") == ["partner"]
    assert ground("Go on", "echo auditors && ls").strange("ls auditors") == ["auditors"]


@pytest.mark.parametrize("word", ["partner", "customer", "password", "upload", "approve", "invoice", "public", "mail"])
def test_no_everyday_word_names_another_person_a_credential_or_an_act(word: str):
    assert base(word) not in everyday()
