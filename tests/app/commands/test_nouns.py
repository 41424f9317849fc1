"""/skills and /bundles."""

from dataclasses import replace

import pytest

from hermes_agent.app.commands.command import Desk, perform
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.providers.demo.script import Say
from tests.app.place import place
from tests.skills.shelf import put


async def test_skills_are_listed_and_found_by_what_they_do(tmp_path):
    put(tmp_path / "home/skills", "model", "Models clay.")
    (tmp_path / "home/skills/broken").mkdir()
    (tmp_path / "home/skills/broken/SKILL.md").write_text("nothing")
    async with place(tmp_path, [Say("Done.")]) as here:
        listed = await here.text("/skills")
        found = await here.text("/skills write a commit message")

    assert "model: Models clay. (a command has this name)" in listed
    assert "does not begin with frontmatter" in listed
    assert found.startswith("commit-message:")


async def test_bundles_are_listed_and_used(tmp_path):
    put(tmp_path / "home/skills", "tea", body="Boil. $ARGUMENTS")
    put(tmp_path / "home/skills", "cup", body="Take a cup.")
    (tmp_path / "home/skill-bundles").mkdir()
    (tmp_path / "home/skill-bundles/party.yaml").write_text("skills: [cup, tea]\ndescription: For guests.\n")
    (tmp_path / "home/skill-bundles/bad.yaml").write_text("skills: 7\n")
    async with place(tmp_path, [Say("Done.")]) as here:
        listed = await here.text("/bundles")
        one = await here.text("/bundles party")
        used = (await here.type("/party green")).submit.text

    assert one == "/party: For guests. (cup, tea)"
    assert one in listed
    assert "bad.yaml is not a bundle" in listed
    assert "Take a cup." in used
    assert "Boil. green" in used


async def test_a_guest_sees_no_bundles(tmp_path):
    async with place(tmp_path, [Say("Done.")]) as here:
        inbound = replace(
            here.inbound("/bundles"), principal=Principal(platform="x", user="7", standing=Standing.GUEST)
        )
        with pytest.raises(HermesError, match="Guests"):
            await perform(Desk(runtime=here.runtime, record=here.record, inbound=inbound))
        assert "There are no bundles" in await here.text("/bundles")


async def test_a_skill_that_shadows_a_command_is_listed_and_the_command_wins(tmp_path):
    put(tmp_path / "home/skills", "status", body="Not this.")
    (tmp_path / "home/skill-bundles").mkdir()
    (tmp_path / "home/skill-bundles/status.yaml").write_text("skills: [status]\n")
    async with place(tmp_path, [Say("Done.")]) as here:
        done = await here.type("/status")
        listed = await here.text("/skills")

    assert done.submit is None
    assert "Not this." not in done.text
    assert "status: " in listed
    assert "(a command has this name)" in listed
