"""What a model is told of skills, unasked and asked."""

from pathlib import Path

import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import ToolError
from hermes_agent.core.messages import Origin
from hermes_agent.skills.depot import State, Usage
from hermes_agent.skills.format import files_of, inside
from hermes_agent.skills.library import Candidates, index_text
from hermes_agent.skills.managing import SkillReading
from hermes_agent.skills.skill import Occasion
from hermes_agent.tools.schema import collect
from tests.skills.shelf import Shelf, put, shelf, terminal
from tests.tools.bench import Bench


def bench(here: Shelf) -> Bench:
    usage = Usage(here.folder("home"), SystemClock())
    tools = SkillReading(here.library, usage, terminal)
    return Bench(collect([tools])[0], here.folder("work"))


async def test_few_skills_are_named_one_by_one(tmp_path: Path):
    put(tmp_path / "home", "alpha", "Does alpha things.")
    put(tmp_path / "external", "beta", "x " * 500)
    async with shelf(tmp_path) as here:
        text = (await index_text(here.library, "", Occasion()))[0]

    assert "- alpha: Does alpha things." in text
    assert text.endswith("- beta [external; skill_view tells what for]")


async def test_without_skills_nothing_is_said(tmp_path: Path):
    async with shelf(tmp_path) as here:
        assert (await index_text(here.library, "", Occasion()))[0] == ""


async def test_of_few_those_that_are_pinned_are_named_again(tmp_path: Path):
    put(tmp_path / "home", "tea")
    put(tmp_path / "home", "cup")
    async with shelf(tmp_path) as here:
        assert "Pinned" not in (await index_text(here.library, "", Occasion()))[0]
        await here.library.state.change(lambda _: State(pinned=("cup", "gone")))
        text = (await index_text(here.library, "", Occasion()))[0]

    assert text.splitlines()[-1] == "Pinned by the person; load them first where they fit: cup"


async def test_of_many_the_families_and_the_pinned_are_named(tmp_path: Path):
    for number in range(30):
        put(tmp_path / f"home/family{number % 3}", f"skill-{number}")
    async with shelf(tmp_path) as here:
        await here.library.state.change(lambda _: State(pinned=("skill-7", "gone")))
        before = (await index_text(here.library, "", Occasion()))[0]
        put(tmp_path / "home/family1", "one-more")
        await here.library.forget()
        after = (await index_text(here.library, "", Occasion()))[0]

    assert "family0, family1, family2" in before
    assert "- skill-7: Does skill-7" in before
    assert "skill-8" not in before
    assert before == after


async def test_of_what_is_for_elsewhere_no_family_is_told(tmp_path: Path):
    for number in range(30):
        put(tmp_path / f"home/family{number % 2}", f"skill-{number}")
    for family in ("family0", "secret"):
        put(tmp_path / "home" / family, f"a-{family}", more="metadata: {hermes: {chat_kinds: [group]}}\n")
    async with shelf(tmp_path) as here:
        text = (await index_text(here.library, "", Occasion()))[0]
        listed = await bench(here)("skills_list")
        group, _ = await index_text(here.library, "", Occasion(chat_kind="group"))

    assert "family0, family1\n" in f"{text}\n"
    assert "Families: family0 (15), family1 (15)" in listed
    assert "family0, family1, secret" in group


async def test_what_fits_stands_beside_the_message(tmp_path: Path):
    put(tmp_path / "home", "release-notes", "Writes the notes of a release.")
    async with shelf(tmp_path) as here:
        candidates = Candidates(here.library, "", Occasion())
        assert await candidates.words("s", "Write release notes") == "- release-notes: Writes the notes of a release."
        assert await candidates.words("s", "hi") == ""


async def test_a_list_has_pages_families_and_a_query(tmp_path: Path):
    for number in range(60):
        put(tmp_path / "home/office", f"skill-{number:02}", f"Thing number{number}.")
    async with shelf(tmp_path) as here:
        ask = bench(here)
        first = await ask("skills_list")
        assert "[more: after=skill-49]" in first
        assert "Families: office (60)" in first
        assert (await ask("skills_list", after="skill-49")).count("\n") == 9
        assert await ask("skills_list", query="thing number7 please") == "skill-07: Thing number7."
        assert await ask("skills_list", family="nothing") == "No skill fits."


async def test_a_skill_is_shown_with_its_variables_and_its_commands_not_run(tmp_path: Path):
    more = "metadata: {hermes: {parameters: [{name: who, description: Whom}], required_environment_variables: TOKEN}}\n"
    body = "In ${HERMES_SKILL_DIR} of ${HERMES_SESSION_ID}: {{who}} !`touch ran` ${OTHER}"
    folder = put(tmp_path / "home", "a", body=body, more=more)
    (folder / "scripts").mkdir()
    (folder / "scripts/run.sh").write_text("echo hi")
    async with shelf(tmp_path) as here:
        ask = bench(here)
        text = await ask("skill_view", name="a")
        script = await ask("skill_view", name="a", file="scripts/run.sh")

    assert f"In {folder} of s1: {{{{who}}}} !`touch ran` ${{OTHER}}" in text
    assert "Slot {{who}}: Whom" in text
    assert "TOKEN" in text
    assert "scripts/run.sh" in text
    assert script == "echo hi"
    assert not (tmp_path / "work/ran").exists()
    assert Usage(tmp_path / "home", SystemClock()).all()["a"].views == 2


async def test_a_project_s_skill_is_a_file_of_somebody_else(tmp_path: Path):
    put(tmp_path / "work/.agents/skills", "a")
    put(tmp_path / "home", "b", more="metadata: {hermes: {requires_tools: [browser]}}\n")
    async with shelf(tmp_path) as here:
        ask = bench(here)
        assert (await ask.answer("skill_view", {"name": "a"})).parts[0].origin is Origin.WORKSPACE
        answer = await ask.answer("skill_view", {"name": "b"})

    assert answer.parts[0].origin is Origin.SKILL
    assert "not meant for here: it needs the tool `browser`" in answer.parts[0].text


@pytest.mark.parametrize(
    "name", ["../a", "/etc/passwd", "notes.md", "scripts", "scripts/../../x", "other/x", "scripts/\0"]
)
def test_only_the_four_folders_are_a_skill_s_own(tmp_path: Path, name: str):
    with pytest.raises(ToolError, match="not a support file"):
        inside(tmp_path, name)


@pytest.mark.parametrize("name", ["", ".", "../a", "/etc/passwd", ".git/config", "scripts/../../x", "a/.hidden", "a\0"])
def test_what_is_not_inside_the_skill_is_not_read(tmp_path: Path, name: str):
    with pytest.raises(ToolError, match="not a support file"):
        inside(tmp_path, name, anywhere=True)


async def test_others_put_files_beside_skill_md_and_they_are_read(tmp_path: Path):
    folder = put(tmp_path / "home", "a")
    (folder / "forms.md").write_text("Fill it in.")
    async with shelf(tmp_path) as here:
        ask = bench(here)
        assert "forms.md" in await ask("skill_view", name="a")
        assert await ask("skill_view", name="a", file="forms.md") == "Fill it in."


async def test_a_file_behind_a_link_is_not_shown(tmp_path: Path):
    folder = put(tmp_path / "home", "a")
    (tmp_path / "secret").write_text("secret")
    (folder / "assets").symlink_to(tmp_path)
    (folder / "scripts").mkdir()
    (folder / "scripts/key").symlink_to(tmp_path / "secret")
    (folder / "references").mkdir()
    (folder / "references/picture").write_bytes(b"\xff\xfe")
    (folder / "references/large").write_bytes(b"x" * ((1 << 20) + 1))
    async with shelf(tmp_path) as here:
        ask = bench(here)
        for name in ("assets/secret", "scripts/key"):
            with pytest.raises(ToolError, match="leads through a link"):
                await ask("skill_view", name="a", file=name)
        with pytest.raises(ToolError, match="no file"):
            await ask("skill_view", name="a", file="references/none")
        with pytest.raises(ToolError, match="at most"):
            await ask("skill_view", name="a", file="references/large")
        assert "binary file of 2 bytes" in await ask("skill_view", name="a", file="references/picture")

    assert files_of(folder) == ["references/large", "references/picture"]
