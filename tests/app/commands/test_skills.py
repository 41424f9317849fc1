"""/skills."""

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
