"""Skills are found where they stand, by name and by what is to be done, for whom they are meant."""

import os
from pathlib import Path

import pytest

from hermes_agent.core.errors import HomeError, ToolError
from hermes_agent.skills.depot import State, StateFile
from hermes_agent.skills.format import BadSkill
from hermes_agent.skills.library import NoSkill
from hermes_agent.skills.skill import Layer, Occasion, Ours, Places
from tests.skills.shelf import put, shelf, skill_text


async def test_skills_are_found_in_every_layer_and_the_earlier_wins(tmp_path: Path):
    for layer in ("home", "external", "bundled", "work/.agents/skills"):
        put(tmp_path / layer, "both", f"From {layer}.")
    put(tmp_path / "bundled", "only-bundled")
    put(tmp_path / "home/office", "in-a-category")

    async with shelf(tmp_path) as here:
        names = {card.name: card for card in await here.library.all(str(tmp_path / "work"))}
        same = await here.library.same_name("both", str(tmp_path / "work"))

    assert set(names) == {"both", "only-bundled", "in-a-category"}
    assert names["both"].description == "From home."
    assert names["in-a-category"].family == "office"
    assert [card.layer for card in same] == [Layer.USER, Layer.PROJECT, Layer.EXTERNAL, Layer.BUNDLED]


async def test_a_project_s_skills_are_for_that_project_alone(tmp_path: Path):
    (tmp_path / "work/.git").mkdir(parents=True)
    (tmp_path / "work/sub").mkdir()
    put(tmp_path / "work/.hermes/skills", "deploy-it")

    async with shelf(tmp_path) as here:
        assert (await here.library.find("deploy-it", str(tmp_path / "work/sub"))).layer is Layer.PROJECT
        with pytest.raises(NoSkill):
            await here.library.find("deploy-it", str(tmp_path))


async def test_what_changes_on_disk_is_seen(tmp_path: Path):
    folder = put(tmp_path / "home", "a-skill", "Old words.")
    async with shelf(tmp_path) as here:
        await here.library.find("a-skill")
        put(tmp_path / "home", "a-skill", "New words about it.")
        put(tmp_path / "home", "another")
        await here.library.forget()
        assert (await here.library.find("a-skill")).description == "New words about it."
        assert [card.name for card in await here.library.all()] == ["a-skill", "another"]
        (folder / "SKILL.md").unlink()
        await here.library.forget()
        assert [card.name for card in await here.library.all()] == ["another"]


async def test_a_broken_skill_says_why_and_the_others_stay(tmp_path: Path):
    put(tmp_path / "home", "good")
    (tmp_path / "home/Bad").mkdir()
    (tmp_path / "home/Bad/SKILL.md").write_text(skill_text("Bad"))

    async with shelf(tmp_path) as here:
        assert [card.name for card in await here.library.all()] == ["good"]
        assert "lower case" in (await here.library.broken())[0][1]
        with pytest.raises(BadSkill, match="lower case"):
            await here.library.find("Bad")


async def test_an_unknown_name_is_answered_with_the_nearest(tmp_path: Path):
    put(tmp_path / "home", "release-notes")
    async with shelf(tmp_path) as here:
        with pytest.raises(NoSkill) as found:
            await here.library.find("relese-notes")

    assert "release-notes" in found.value.hint


async def test_a_link_in_a_project_is_not_followed(tmp_path: Path):
    put(tmp_path / "elsewhere", "stolen")
    (tmp_path / "work/.agents/skills").mkdir(parents=True)
    (tmp_path / "work/.agents/skills/stolen").symlink_to(tmp_path / "elsewhere/stolen")

    async with shelf(tmp_path) as here:
        assert await here.library.all(str(tmp_path / "work")) == []


async def test_a_task_finds_its_skill_by_name_description_body_and_cjk(tmp_path: Path):
    put(tmp_path / "home", "pdf", "Reads documents.", "Use pdftotext.")
    put(tmp_path / "home", "tables", "Compares spreadsheets and workbooks.")
    put(tmp_path / "home", "weekly", "Writes reports.", "Sum the quarterly revenue, then plot the histogram.")
    put(tmp_path / "home", "cjk", "整理会议记录。")

    async with shelf(tmp_path) as here:
        for task, name in (
            ("What stands in report.pdf?", "pdf"),
            ("comparing two spreadsheets of workbooks", "tables"),
            ("plotting histograms of quarterly revenue", "weekly"),
            ("请整理一下会议记录", "cjk"),
        ):
            assert [card.name for card in await here.library.candidates(task)][:1] == [name]
        assert await here.library.candidates("Thanks, that is all for today") == []


async def test_skills_are_offered_on_their_occasions_alone(tmp_path: Path):
    put(tmp_path / "home", "groups", more="metadata: {hermes: {chat_kinds: [group], channels: [discord]}}\n")
    async with shelf(tmp_path) as here:
        assert await here.library.all("", Occasion()) == []
        there = Occasion(channel="discord", chat_kind="group")
        assert [card.name for card in await here.library.all("", there)] == ["groups"]


async def test_skills_for_elsewhere_take_no_room_on_a_page(tmp_path: Path):
    for number in range(30):
        put(tmp_path / "home", f"any-{number:02}")
        put(tmp_path / "home", f"a-group-{number:02}", more="metadata: {hermes: {chat_kinds: [group]}}\n")
    async with shelf(tmp_path) as here:
        page = await here.library.all("", Occasion(), limit=25)
        rest = await here.library.all("", Occasion(), after=page[-1].name, limit=25)

    assert [card.name for card in (*page, *rest)] == [f"any-{number:02}" for number in range(30)]


@pytest.mark.parametrize(
    ("ours", "where"),
    [
        (Ours(channels=("telegram",), chat_kinds=("group",)), ""),
        (Ours(channels=("Telegram", "slack"), chat_kinds=("groups",)), ""),
        (Ours(chat_kinds=("private",)), "only for the kind of chat `private`; this is telegram (group)"),
        (Ours(channels=("cli",)), "only for the channel `cli`; this is telegram (group)"),
        (
            Ours(platforms=("macos", "windows"), channels=("telegram",)),
            "only for the system `macos` or `windows` and the channel `telegram`; this is telegram (group) on linux",
        ),
    ],
)
def test_where_a_skill_may_be_used(ours: Ours, where: str):
    here = Occasion(system="linux", channel="telegram", chat_kind="group")

    assert here.elsewhere(ours) == where


@pytest.mark.parametrize(
    ("conversation", "is_private"),
    [("cli:folder:/tmp", True), ("telegram:dm:7", True), ("api:name:7", True), ("slack:group:7", False)],
)
def test_what_is_private(conversation: str, is_private: bool):
    assert (Occasion.at(conversation).elsewhere(Ours(chat_kinds=("private",))) == "") is is_private


@pytest.mark.parametrize(
    ("ours", "fits"),
    [
        (Ours(platforms=("linux",)), True),
        (Ours(platforms=("macos",)), False),
        (Ours(requires_tools=("terminal",)), True),
        (Ours(requires_tools=("browser",)), False),
        (Ours(requires_toolsets=("web",)), False),
        (Ours(fallback_for_tools=("terminal",)), False),
        (Ours(fallback_for_toolsets=("web",)), True),
    ],
)
def test_conditions(ours: Ours, fits: bool):
    here = Occasion(system="linux", tools=frozenset({"terminal"}), toolsets=frozenset({"shell"}))

    assert (here.why_not(ours) == "") is fits


async def test_disabled_and_removed_skills_are_not_offered(tmp_path: Path):
    put(tmp_path / "home", "mine")
    put(tmp_path / "bundled", "theirs")
    async with shelf(tmp_path, disabled=("mine",)) as here:
        await here.library.state.change(lambda state: State(removed={"theirs": ""}))
        assert await here.library.all() == []


async def test_a_skill_is_read_once_for_each_state_of_its_file(tmp_path: Path):
    folder = put(tmp_path / "home", "a")
    async with shelf(tmp_path) as here:
        card = await here.library.find("a")
        assert await here.library.read(card) is await here.library.read(card)
        put(tmp_path / "home", "a", body="Other.")
        assert (await here.library.read(card)).body == "Other."
        (folder / "SKILL.md").unlink()
        with pytest.raises(NoSkill, match="is gone"):
            await here.library.read(card)


async def test_a_damaged_index_is_made_again(tmp_path: Path):
    put(tmp_path / "home", "a")
    (tmp_path / "skills.db").write_bytes(b"no database" * 100)
    async with shelf(tmp_path) as here:
        assert [card.name for card in await here.library.all()] == ["a"]


def test_no_skills_of_a_project_where_the_setting_says_so(tmp_path: Path):
    put(tmp_path / ".agents/skills", "a")

    assert len(Places(home=tmp_path / "home", project=False).roots(str(tmp_path))) == 2


async def test_the_state_of_two_processes_is_one(tmp_path: Path):
    one, two = StateFile(tmp_path), StateFile(tmp_path)
    await one.change(lambda state: State(pinned=(*state.pinned, "a")))
    os.utime(tmp_path / ".state.json", (1, 1))
    await two.change(lambda state: State(pinned=(*state.pinned, "b")))

    assert one.get().pinned == two.get().pinned == ("a", "b")
    (tmp_path / ".state.json").write_text("{")
    with pytest.raises(HomeError, match="repair it"):
        one.get()


def test_no_skill_is_a_kind_of_answer():
    assert issubclass(NoSkill, ToolError)
