"""Looking through taps: what is offered, found and meant, and what happens where one does not answer."""

from pathlib import Path

import pytest

from hermes_agent.core.errors import HomeError
from hermes_agent.skills.depot import Trust
from hermes_agent.skills.hub.git import HubError, TreeEntry
from hermes_agent.skills.hub.sources import FRESH, LINK, MODULE, Offered, Tap, catalog_of, found, kept, select_files
from hermes_agent.testing.clock import FakeClock
from tests.skills.hub.origin import Place, hub_at, origin
from tests.skills.shelf import skill_text


@pytest.fixture
async def here(tmp_path: Path):
    async with hub_at(tmp_path) as place:
        place.there.skill("green-tea", description="Makes tea of green leaves in a pot.")
        place.there.skill("coffee", description="Makes coffee in a pot.", **{"references/x/SKILL.md": "no skill"})
        yield place


async def names(here: Place, words: str = "", **more: object) -> list[str]:
    return [each.skill.name for each in await here.hub.sources.offers(words, **more)]


async def test_what_is_offered_is_listed_and_found_by_words(here: Place):
    assert sorted(await names(here)) == ["coffee", "green-tea"]
    assert await names(here, "pot") == ["coffee", "green-tea"]
    assert await names(here, "green pot") == ["green-tea", "coffee"]
    assert await names(here, "tea", tap="them") == ["green-tea"]
    assert await names(here, "chess") == []
    with pytest.raises(HubError, match=r"no tap `us`.*`them`"):
        await names(here, tap="us")


async def test_a_broken_skill_is_offered_with_its_reason(here: Place):
    here.there.commit(
        {"skills/bad/SKILL.md": "nothing", "skills/worse/SKILL.md": b"\xff", "large/SKILL.md": "x" * 500_000}
    )
    problems = {each.skill.path: each.skill.problem for each in await here.hub.sources.offers()}

    assert "does not begin" in problems["skills/bad"]
    assert "not UTF-8" in problems["skills/worse"]
    assert "500,000 bytes" in problems["large"]
    with pytest.raises(HubError, match=r"`bad` of them cannot be used"):
        await here.hub.sources.find("bad")


async def test_a_skill_at_the_top_of_its_repository_is_one(here: Place):
    alone = origin(here.root / "alone")
    alone.commit({"SKILL.md": skill_text("solo"), "scripts/run.sh": "echo"})
    entry = await here.install("solo", source=str(alone.root))

    assert (entry.path, entry.tap) == ("", "alone")
    assert (await here.library.find("solo")).path.joinpath("scripts/run.sh").is_file()


async def test_a_name_is_meant_by_itself_its_tap_or_its_path(here: Place):
    for spec in ("coffee", "them/coffee", "skills/coffee", "them/skills/coffee"):
        assert (await here.hub.sources.find(spec)).skill.path == "skills/coffee"
    with pytest.raises(HubError, match=r"No tap offers `cofee`\. Did you mean `coffee`"):
        await here.hub.sources.find("cofee")


async def test_two_taps_with_one_name_have_to_be_told_apart(here: Place):
    other = origin(here.root / "other")
    other.skill("coffee", "Instant.")
    await here.hub.sources.taps.add(Tap(name="us", url=str(other.root)))

    with pytest.raises(HubError, match="offered 2 times; say which: them/skills/coffee, us/skills/coffee"):
        await here.hub.sources.find("coffee")
    assert (await here.hub.sources.find("us/coffee")).tap.name == "us"


async def test_the_trust_of_a_tap_holds_for_its_address_too(here: Place):
    await here.hub.sources.taps.add(Tap(name="them", url=str(here.there.root), trust=Trust.TRUSTED))
    assert (await here.hub.sources.find("coffee", str(here.there.root))).tap.trust is Trust.TRUSTED


async def test_without_taps_a_person_is_told_how_to_add_one(here: Place):
    await here.hub.sources.taps.remove("them")
    with pytest.raises(HubError, match="tap add owner/repository"):
        await here.hub.sources.find("coffee")
    with pytest.raises(HubError, match="none yet"):
        await here.hub.sources.taps.remove("them")


async def test_who_only_looks_asks_once_an_hour(here: Place):
    clock = FakeClock()
    here.hub.sources.clock = clock
    await names(here)
    here.there.skill("chess")
    here.again()
    here.hub.sources.clock = clock
    assert "chess" not in await names(here)
    here.again()
    assert "chess" in await names(here, fresh=True)
    here.there.skill("chess-two")
    here.again()
    here.hub.sources.clock = clock
    await clock.advance(FRESH + 1)
    assert "chess-two" in await names(here)


async def test_a_tap_that_vanished_is_told_and_what_was_known_is_used(here: Place):
    other = origin(here.root / "other")
    other.skill("chess")
    await here.hub.sources.taps.add(Tap(name="us", url=str(other.root)))
    await here.hub.sources.taps.add(Tap(name="never", url=str(here.root / "never")))
    await names(here)
    here.there.root.rename(here.root / "away")
    here.again()

    assert sorted(await names(here, fresh=True)) == ["chess", "coffee", "green-tea"]
    assert [text.split(",")[0] for text in here.hub.sources.problems] == [
        "The tap `them` did not answer",
        "The tap `never` did not answer",
    ]
    with pytest.raises(HubError, match=r"No tap offers `nothing`.*did not answer"):
        await here.hub.sources.find("nothing")
    with pytest.raises(HubError, match="There is no folder"):
        await here.install("coffee")


async def test_a_remote_that_does_not_answer_leaves_its_catalog(here: Place):
    await names(here)
    (here.there.root / ".git").rename(here.root / "away")
    here.again()
    assert sorted(await names(here, fresh=True)) == ["coffee", "green-tea"]
    assert "what was known of it is used" in here.hub.sources.problems[0]


async def test_a_damaged_catalog_is_made_anew(here: Place):
    await names(here)
    folder = here.hub.sources.repository(str(here.there.root)).folder
    next(folder.glob("catalog-*")).write_text("{")
    assert kept(folder, "") is None
    here.again()
    assert len(await names(here)) == 2


async def test_more_skills_than_are_read_are_counted(here: Place):
    found = await catalog_of(here.hub.sources.repository(str(here.there.root)), "", 0.0, most=1)
    assert (len(found.skills), found.left_out) == (1, 1)


async def test_a_repository_without_skills_offers_none(here: Place):
    bare = origin(here.root / "bare")
    bare.commit({"README.md": "Hello."})
    found = await here.hub.sources.catalog(Tap(name="bare", url=str(bare.root)))
    assert (found.skills, found.files) == ((), 1)


async def test_what_takes_long_is_told(here: Place):
    await names(here)
    assert here.told[0] == ("origin", 0)


async def test_damaged_or_odd_taps_are_told(here: Place):
    with pytest.raises(HubError, match="not a name for a tap"):
        await here.hub.sources.taps.add(Tap(name="a b", url="x"))
    (here.hub.home / ".hub/taps.json").write_text("{")
    with pytest.raises(HomeError, match="repair it"):
        here.hub.sources.taps.all()


def test_names_count_more_than_descriptions():
    skills = [Offered(name="pot", path="a", description="x"), Offered(name="a", path="b", description="pot pot")]
    assert [each.name for each in found(skills, "POTS pot")] == ["pot", "a"]


def entry(path: str, kind: str = "100644", size: int = 1) -> TreeEntry:
    return TreeEntry(path=path, kind=kind, oid="0" * 40, size=size)


def test_hidden_files_stay_behind():
    entries = [entry("a/SKILL.md"), entry("a/.github/x", LINK), entry("a/b/.DS_Store"), entry("a/b/c.md")]
    assert list(select_files(entries, "a")) == ["SKILL.md", "b/c.md"]


def test_every_reason_is_told():
    entries = [
        entry("x", LINK),
        entry("y", MODULE),
        entry("Z.md"),
        entry("z.md"),
        entry("large", size=2 << 20),
        *[entry(f"many/{number}", size=1 << 20) for number in range(300)],
    ]
    with pytest.raises(HubError, match=r"no SKILL\.md; it has 305 files.*bytes, at most.*link.*and 2 more"):
        select_files(entries, "")


@pytest.mark.parametrize("name", ["a\nb", "a\\b", "con:", "x" * 201, "/".join("abcdefghi"), "a\u202eb", "what?"])
def test_names_that_are_none_everywhere_are_refused(name: str):
    with pytest.raises(HubError, match="is not a name for a file"):
        select_files([entry("SKILL.md"), entry(name)], "")


def test_letters_that_look_alike_to_a_file_system_are_one_name():
    with pytest.raises(HubError, match="are one name"):
        select_files([entry("SKILL.md"), entry("caf\u00e9.md"), entry("cafe\u0301.md")], "")
