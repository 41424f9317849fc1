"""Skills of one household in several homes over one database: made, patched and put aside on each side."""

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hermes_agent.core.clock import RandomIds, SystemClock
from hermes_agent.core.errors import ToolError
from hermes_agent.skills.versions import Planned, SkillVersions
from hermes_agent.skills.writing import Writer
from hermes_agent.store.database import open_store
from hermes_agent.store.versions import Author, By, Kind
from tests.databases import cluster, database_url
from tests.skills.shelf import put, shelf, skill_text

__all__ = ["cluster", "database_url"]
NAMES = ("a", "b", "c")
AGENT = By(author=Author.FOREGROUND)


@pytest.fixture
async def homes(database_url: str, tmp_path: Path) -> AsyncIterator[dict[str, Writer]]:
    """Three homes on one database."""
    async with AsyncExitStack() as closing:
        found = {}
        for name in NAMES:
            store = await open_store(database_url, machine=name)
            closing.push_async_callback(store.close)
            here = await closing.enter_async_context(shelf(tmp_path / name))
            versions = SkillVersions(store, SystemClock(), here.library.places.home)
            found[name] = Writer(library=here.library, versions=versions, ids=RandomIds())
        yield found


async def catch_up(*writers: Writer) -> None:
    for writer in writers:
        if names := await writer.versions.behind():
            await writer.mend(names)


def files(writer: Writer) -> dict[str, str]:
    """The skills of a home, without what is put aside."""
    return {
        path.relative_to(writer.home).as_posix(): path.read_text()
        for path in sorted(writer.home.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(writer.home).parts)
    }


async def authors(writer: Writer) -> list[str]:
    return [each.change.author.value for each in await writer.versions.store.versions.list(Kind.SKILL, limit=10_000)]


async def test_a_skill_is_made_patched_and_put_aside_by_whichever_home(homes: dict[str, Writer]):
    a, b, c = homes.values()
    await a.create("tea", skill_text("tea", body="Boil.\nPour."), AGENT, "kitchen")
    await a.write_file("tea", "scripts/run.sh", b"#!/bin/sh\necho\n", AGENT)
    await catch_up(b)
    assert files(a) == files(b)
    assert (b.home / "kitchen/tea/scripts/run.sh").stat().st_mode & 0o100

    await b.patch("tea", "Pour.", "Pour slowly.", AGENT)
    await a.patch("tea", "Boil.", "Boil water.", AGENT)
    await catch_up(b, c)

    assert "Boil water.\nPour slowly." in files(a)["kitchen/tea/SKILL.md"]
    assert files(a) == files(b) == files(c)
    await c.archive("tea", AGENT)
    await catch_up(a, b)
    assert files(a) == files(b) == files(c) == {}
    await b.restore("tea", AGENT)
    await catch_up(a, c)
    assert files(a) == files(b) == files(c) != {}
    assert set(await authors(a)) == {"foreground"}


async def test_a_name_that_another_home_has_is_taken(homes: dict[str, Writer]):
    a, b, _ = homes.values()
    await a.create("tea", skill_text("tea"), AGENT)

    with pytest.raises(ToolError, match="There is a skill `tea` already"):
        await b.create("tea", skill_text("tea", body="Another."), AGENT)

    assert files(a) == files(b)
    assert await authors(a) == ["foreground"]


async def test_what_was_edited_by_hand_is_merged_with_what_another_home_changed(homes: dict[str, Writer]):
    a, b, _ = homes.values()
    body = "\n".join(f"Line {number}." for number in range(12))
    await a.create("tea", skill_text("tea", body=body), AGENT)
    await catch_up(b)
    await a.patch("tea", "Line 10.", "Line ten.", AGENT)
    path = b.home / "tea/SKILL.md"
    path.write_text(path.read_text().replace("Line 1.", "Mine."))

    await catch_up(b, a)

    assert files(a) == files(b)
    assert "Mine." in files(a)["tea/SKILL.md"]
    assert "Line ten." in files(a)["tea/SKILL.md"]
    assert await authors(a) == ["found", "foreground", "foreground"]


async def test_where_both_changed_the_same_lines_what_the_person_wrote_stands_and_the_other_is_in_the_history(
    homes: dict[str, Writer],
):
    a, b, _ = homes.values()
    await a.create("tea", skill_text("tea", body="Boil."), AGENT)
    await catch_up(b)
    await a.patch("tea", "Boil.", "Cook.", AGENT)
    path = b.home / "tea/SKILL.md"
    path.write_text(path.read_text().replace("Boil.", "Mine."))

    await catch_up(b, a)

    assert files(a) == files(b)
    assert "Mine." in files(a)["tea/SKILL.md"]
    assert b"Cook." in ((await a.versions.history("tea"))[0].change.before or b"")


async def test_a_change_that_another_home_has_under_way_is_left_to_it(homes: dict[str, Writer]):
    a, b, _ = homes.values()
    await a.create("tea", skill_text("tea", body="Boil."), AGENT)
    await catch_up(b)
    now = (a.home / "tea/SKILL.md").read_bytes()
    after = now.replace(b"Boil.", b"Boil it.")
    await a.versions.intend(
        [Planned(item="tea/SKILL.md", before=now, after=after)], AGENT, "patch", "act", a.home / "tea"
    )

    await catch_up(b)
    assert [each.state.value for each in await b.versions.history("tea")] == ["intended", "done"]
    await b.patch("tea", "it.", "it well.", AGENT)
    await a.notice("tea")

    assert files(a) == files(b)
    assert "Boil it well." in files(a)["tea/SKILL.md"]
    assert await authors(a) == ["foreground"] * 3


async def test_an_installed_skill_is_its_homes_alone(homes: dict[str, Writer]):
    a, b, _ = homes.values()
    plan = Planned(item="tea/SKILL.md", before=None, after=skill_text("tea").encode())
    installed = await a.versions.intend([plan], By(author=Author.HUB), "install", "act")
    await a.versions.complete(installed)

    await catch_up(b)
    await b.create("tea", skill_text("tea", body="My own."), AGENT)

    assert "My own." in files(b)["tea/SKILL.md"]


async def test_a_home_that_joins_brings_its_skills_along(homes: dict[str, Writer]):
    a, b, _ = homes.values()
    await a.create("tea", skill_text("tea"), AGENT)
    put(b.home, "coffee")

    await b.notice("coffee")
    await catch_up(b, a)

    assert files(a) == files(b)
    assert sorted(files(a)) == ["coffee/SKILL.md", "tea/SKILL.md"]


async def test_a_name_that_leads_out_of_the_folder_is_not_written(homes: dict[str, Writer]):
    a, b, _ = homes.values()
    plan = Planned(item="../../evil/SKILL.md", before=None, after=b"x")
    await a.versions.intend([plan], AGENT, "create", "act", a.home / "evil")

    await catch_up(b)

    assert files(b) == {}
    assert not list(b.home.parent.parent.rglob("evil"))


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_they_do_nothing_is_lost_and_nobody_is_named_who_did_not_do_it(
    homes: dict[str, Writer], seed: int
):
    chance, wanted = random.Random(seed), dict[str, list[str]]()
    for step in range(40):
        writer = homes[chance.choice(NAMES)]
        skill = f"skill-{chance.randrange(4)}"
        match chance.choice(("patch", "patch", "patch", "archive", "look")):
            case "patch" if skill in wanted:
                await writer.notice(skill)
                await writer.patch(skill, "End.", f"Step {step}.\nEnd.", AGENT)
                wanted[skill].append(f"Step {step}.")
            case "patch":
                await writer.create(skill, skill_text(skill, body="End."), AGENT)
                wanted[skill] = []
            case "archive" if skill in wanted:
                await writer.notice(skill)
                await writer.archive(skill, AGENT)
                del wanted[skill]
            case "look":
                await catch_up(writer)
    await catch_up(*homes.values())

    found = files(homes["a"])
    assert found == files(homes["b"]) == files(homes["c"])
    assert {path.partition("/")[0] for path in found} == set(wanted)
    for skill, steps in wanted.items():
        assert "\n".join([*steps, "End."]) in found[f"{skill}/SKILL.md"]
    assert set(await authors(homes["a"])) <= {"foreground"}
