"""The index of skills: who wins, pages, what fits a task, and that the file is disposable."""

from pathlib import Path

import apsw
import pytest

from hermes_agent.core.errors import StoreError
from hermes_agent.store import skills_index
from hermes_agent.store.skills_index import STOP_WORDS, Indexed, SkillsIndex

ROOTS = ["/one", "/two's"]


def skill(name: str, root: str = "/one", about: str = "", body: str = "", **more: str) -> Indexed:
    return Indexed(folder=f"{root}/{name}", root=root, name=name, stamp="1", about=about, body=body, card=b"{}", **more)


@pytest.fixture
async def index(tmp_path: Path):
    found = SkillsIndex(tmp_path / "skills.db")
    yield found
    await found.close()


async def test_the_earlier_root_wins(index: SkillsIndex):
    await index.update([skill("a", "/two's"), skill("a"), skill("b", "/two's")])

    assert [row.root for row in await index.named("a", ROOTS)] == ROOTS
    assert [(row.name, row.root) for row in await index.page(ROOTS)] == [("a", "/one"), ("b", "/two's")]
    assert [(row.name, row.root) for row in await index.page(["/two's"])] == [("a", "/two's"), ("b", "/two's")]


async def test_a_skill_is_replaced_and_taken_away(index: SkillsIndex):
    await index.update([skill("a", about="old words here")])
    await index.update([skill("a", about="fresh sentence there")])
    assert await index.search("old words", ROOTS) == []
    assert [row.name for row in await index.search("fresh sentence", ROOTS)] == ["a"]

    await index.update([], gone=["/one/a", "/one/never"])
    assert await index.stamps(["/one"]) == {"/one": {}}
    assert await index.search("fresh sentence", ROOTS) == []


async def test_a_problem_is_kept_and_never_found(index: SkillsIndex):
    await index.update(
        [skill("bad", about="spoken words", problem="No."), skill("bad", "/two's", about="spoken words")]
    )

    assert [row.problem for row in await index.problems(ROOTS)] == ["No."]
    assert [row.root for row in await index.search("spoken words", ROOTS)] == ["/two's"]


async def test_families_are_counted_and_listed(index: SkillsIndex):
    await index.update([skill("a", family="x"), skill("b", family="x"), skill("c", family="y")])

    assert await index.families(ROOTS, b"{") == [("x", b"", 2), ("y", b"", 1)]
    assert await index.families(ROOTS, b"none") == [("x", b"{}", 2), ("y", b"{}", 1)]
    assert [row.name for row in await index.page(ROOTS, family="x", after="a")] == ["b"]


async def test_what_says_nothing_finds_nothing(index: SkillsIndex):
    await index.update([skill("a", about="words"), skill("b", about="other things entirely")])

    assert await index.search("", ROOTS) == []
    assert await index.search("the and of", ROOTS) == []
    assert await index.search('" OR name:* (NEAR', ROOTS) == []
    assert "the" in STOP_WORDS


async def test_a_whole_name_that_is_said_counts_more_than_a_word(index: SkillsIndex):
    await index.update([skill("pdf", about="x"), *(skill(f"s{n}", about="pdf reports of pdf") for n in range(4))])

    assert (await index.search("read the pdf reports", ROOTS))[0].name == "pdf"


async def test_another_format_of_the_file_is_thrown_away(tmp_path: Path):
    path = tmp_path / "skills.db"
    old = apsw.Connection(str(path))
    old.execute("CREATE TABLE skill (x); PRAGMA user_version = 99")
    old.close()
    index = SkillsIndex(path)

    assert await index.page(ROOTS) == []
    await index.close()
    await index.close()


async def test_a_file_that_cannot_be_made_is_a_store_error(tmp_path: Path):
    index = SkillsIndex(tmp_path / "nowhere/skills.db")

    with pytest.raises(StoreError):
        await index.page(ROOTS)
    await index.close()


async def test_what_another_program_adds_is_counted(tmp_path: Path, index: SkillsIndex):
    await index.update([skill("tea", about="makes oolong")])
    assert await index.search("a cup of matcha", ROOTS) == []
    other = SkillsIndex(tmp_path / "skills.db")
    await other.update([skill("cup", about="holds matcha")])
    await other.close()

    assert [row.name for row in await index.search("a cup of matcha", ROOTS)] == ["cup"]


async def test_words_are_not_remembered_without_end(index: SkillsIndex):
    await index.update([skill("tea", about="makes oolong")])
    for first in range(0, skills_index.COUNTED + 2_000, 1_000):
        await index.search(" ".join(f"w{number:x}" for number in range(first, first + 1_000)), ROOTS)

    assert len(index._counts) <= skills_index.COUNTED + 1_000
