"""Where the curator stands, in words."""

from pathlib import Path

import pytest

from hermes_agent.app.learning.status import Row, Status
from hermes_agent.skills.changes import By
from hermes_agent.store.versions import Author
from tests.learning.curator.harness import Upkeep, kept_home, points


def status(**more: object) -> Status:
    facts = {"enabled": True, "paused": False, "passed": 0.0, "due": 0.0, "empty": 0, "last": "", "skills": ()}
    return Status(**{**facts, "archived": (), "overlaps": (), **more})


@pytest.mark.parametrize(
    ("more", "when"),
    [
        ({"paused": True}, "Paused. No pass has ended yet."),
        ({"due": None}, "Automatic passes are off (`curator.enabled`, `learning.mode`). No pass has ended yet."),
        ({}, "No pass has ended yet. The first, which only reports, is due, once nobody talks."),
        ({"empty": 2}, "once nobody talks. 2 in a row changed nothing: Hermes asks a model less often."),
    ],
)
def test_when_the_next_pass_is_stands_in_a_sentence(more: dict[str, object], when: str):
    assert status(**more).when.endswith(when)


def test_each_skill_has_a_line_and_what_was_put_aside_another():
    row = Row(name="tea", age="active", days=3, pinned=False, grade="B", why_not="")
    theirs = Row(name="milk", age="", days=0, pinned=False, grade="", why_not="a person wrote it")

    assert status(skills=(row, theirs), archived=("old",)).lines[1:] == [
        "- tea: active, 3 days unused, B",
        "- milk: a person wrote it, 0 days unused",
        "Archived: old",
    ]


async def test_a_skill_that_is_due_to_be_put_aside_says_so_and_a_grade_is_of_the_text_that_had_it(tmp_path: Path):
    async with kept_home(tmp_path, Upkeep([points("make-tea")])) as kept:
        await kept.make("make-tea")
        await kept.make("old-tea", days=-100)
        await kept.curating.run(look=True)
        rows = {row.name: row for row in (await kept.curating.status()).skills}
        assert rows["old-tea"].age == "due to be archived"
        assert rows["make-tea"].grade

        await kept.writer().write_file("make-tea", "references/a.md", b"new", By(author=Author.BACKGROUND))
        rows = {row.name: row for row in (await kept.curating.status()).skills}
        assert rows["make-tea"].grade == ""
