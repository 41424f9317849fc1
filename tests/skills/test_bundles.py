"""Bundles: several skills by one name, read from files that a person may write."""

from pathlib import Path

import pytest

from hermes_agent.core.errors import ToolError
from hermes_agent.skills.invoke import BadBundle, Bundle, Bundles, Invoked, bundles_of, invoke, preloaded
from hermes_agent.skills.library import NoSkill
from hermes_agent.skills.skill import Occasion
from tests.skills.shelf import Shelf, put, shelf


async def ran(command: str) -> str:
    return f"<{command}>"


async def use(here: Shelf, line: str) -> Invoked | None:
    return await invoke(here.library, line, workspace="", session="s1", run=ran, occasion=Occasion())


@pytest.fixture
async def here(tmp_path: Path):
    put(tmp_path / "home", "one", body="First: $ARGUMENTS.")
    put(tmp_path / "home", "two", body="Second: $ARGUMENTS.")
    async with shelf(tmp_path) as kept:
        bundles_of(kept.library.places.home).put(
            Bundle(name="both", skills=("one", "two"), instruction="Begin with the first.")
        )
        yield kept


async def test_one_name_uses_several_skills_and_says_more(here: Shelf):
    found = await use(here, "/both green tea")
    assert found is not None
    assert (found.names, found.words) == (("one", "two"), "green tea")
    assert found.text.index("First: .") < found.text.index("Second: green tea.") < found.text.index("Begin with")


async def test_a_bundle_wins_over_a_skill_and_stacks_with_others(here: Shelf):
    put(here.folder("home"), "both", body="Hidden.")
    put(here.folder("home"), "three", body="Third: $ARGUMENTS.")
    await here.library.forget()
    found = await use(here, "/both /three /two x")
    assert found is not None
    assert found.names == ("one", "two", "three")
    assert "Hidden." not in found.text


async def test_a_bundle_can_begin_a_conversation(here: Shelf):
    found = await preloaded(here.library, ("both", "one"), workspace="", session="s1", run=ran, occasion=Occasion())
    assert found.names == ("one", "two")
    assert found.text.endswith("Begin with the first.")


async def test_a_bundle_whose_skill_is_gone_says_so(here: Shelf):
    bundles_of(here.library.places.home).put(Bundle(name="bad", skills=("one", "gone")))
    with pytest.raises(BadBundle, match="bundle `bad` cannot be used: There is no skill `gone`"):
        await use(here, "/bad")
    with pytest.raises(NoSkill):
        await preloaded(here.library, ("nothing",), workspace="", session="s1", run=ran, occasion=Occasion())
    assert await use(here, "/nothing") is None


def test_bundles_are_written_listed_and_removed(tmp_path: Path):
    kept = Bundles(tmp_path / "bundles")
    assert (kept.names(), kept.get("tea")) == ([], None)
    path = kept.put(Bundle(name="tea", skills=("a", "b"), description="Tea für alle."))
    assert path.read_text() == "name: tea\nskills:\n- a\n- b\ndescription: Tea für alle.\n"
    assert kept.there("tea").skills == ("a", "b")
    kept.remove("tea")
    with pytest.raises(BadBundle, match="no bundle `tea`"):
        kept.remove("tea")
    assert kept.get("../tea") is None


def test_a_near_name_is_offered(tmp_path: Path):
    kept = Bundles(tmp_path)
    kept.put(Bundle(name="release", skills=("a",)))
    with pytest.raises(BadBundle, match="Did you mean `release`"):
        kept.there("releases")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("skills: [a", "is not a bundle"),
        ("- a", "is not a bundle: Expected `object`"),
        ("skills: a", "is not a bundle: Expected `array`"),
        ("skills: [a]\nskils: [b]", "unknown field"),
        ("skills: []", "it names no skills"),
        ("name: other\nskills: [a]", "its name is `other`"),
        (f"skills: [{', '.join('abcdefghi')}]", "9 skills, at most 8"),
        ("\xff", "is not a bundle"),
    ],
)
def test_a_file_that_is_none_gets_a_sentence(tmp_path: Path, text: str, said: str):
    (tmp_path / "tea.yaml").write_bytes(text.encode("latin-1"))
    with pytest.raises(ToolError, match=said):
        Bundles(tmp_path).there("tea")


def test_a_name_that_is_none_is_not_written(tmp_path: Path):
    with pytest.raises(BadBundle, match="must be lower case"):
        Bundles(tmp_path).put(Bundle(name="Tea", skills=("a",)))
    assert Bundles(tmp_path).names() == []
