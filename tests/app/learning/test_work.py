"""What does the learning of a home; its reviews are tested in `tests/learning`."""

from hermes_agent.app.learning.home_writers import HomeWriters
from hermes_agent.core.messages import ToolCall
from hermes_agent.learning.drafts import draft_of
from hermes_agent.providers.demo.script import Say
from tests.learning.harness import Script, learning_place
from tests.skills.shelf import put


async def test_writers_find_the_file_that_a_draft_would_change(tmp_path):
    folder = put(tmp_path / "home/skills", "tea", body="Boil.")
    (folder / "references").mkdir()
    (folder / "references/a.md").write_text("more")
    async with learning_place(tmp_path, Script([Say("Hi.")])) as here:
        writers = here.runtime.learner.writers(here.record)
        assert isinstance(writers, HomeWriters)
        assert writers.is_owner

        async def content(tool: str, /, **arguments: str) -> bytes | None:
            found = draft_of(ToolCall(id="c", name=tool, arguments=arguments), "", "k")
            assert found is not None
            return await writers.content(found)

        assert b"Boil." in await content("skill_manage", action="edit", name="tea")
        assert await content("skill_manage", action="write_file", name="tea", file="references/a.md") == b"more"
        assert await content("skill_manage", action="create", name="new") is None
        assert await content("skill_manage", action="create") is None
        assert await content("memory", action="add", target="user", content="x") is None
