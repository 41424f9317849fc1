"""What does the learning of a home; its reviews are tested in `tests/learning`."""

import pytest

from hermes_agent.app.learning.work import HomeWriters, Probes
from hermes_agent.core.clock import RandomIds
from hermes_agent.core.messages import ToolCall
from hermes_agent.learning.drafts import draft_of
from hermes_agent.providers.demo.script import Say
from hermes_agent.sandbox.jail import CannotJail, jail_of
from hermes_agent.sandbox.place import Command, PlaceFailed
from hermes_agent.sandbox.walls import Walls
from tests.learning.harness import Script, learning_place
from tests.skills.shelf import put


async def test_writers_find_the_file_that_a_draft_would_change(tmp_path):
    folder = put(tmp_path / "home/skills", "tea", body="Boil.")
    (folder / "references").mkdir()
    (folder / "references/a.md").write_text("more")
    async with learning_place(tmp_path, Script([Say("Hi.")])) as here:
        writers = here.runtime.learner.work.writers(here.record)
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


@pytest.fixture
def jailed() -> None:
    try:
        jail_of("any", Walls())
    except CannotJail as reason:
        pytest.skip(str(reason))


async def test_the_check_of_a_tool_asks_whether_it_is_there(tmp_path):
    async with learning_place(tmp_path, Script([Say("Hi.")])) as here:
        place = here.runtime.skills.place
        assert place is not None
        probes = Probes(place=place, tools=lambda: ("terminal",), ids=RandomIds(), seconds=0.5)
        assert await probes("tool terminal", "")
        assert not await probes("tool video", "")
        assert not await probes("true", str(tmp_path / "nowhere"))
        assert not await probes("true", "")


@pytest.mark.usefixtures("jailed")
async def test_a_check_runs_in_a_jail_within_its_time(tmp_path):
    async with learning_place(tmp_path, Script([Say("Hi.")])) as here:
        probes = Probes(place=here.runtime.skills.place, tools=tuple, ids=RandomIds(), seconds=3.0)
        work = str(tmp_path / "work")
        assert await probes("true", work)
        assert not await probes("false", work)
        assert not await probes("sleep 60", work)
        assert not await probes(f"cat {tmp_path}/home/config.yaml", work)


@pytest.mark.usefixtures("jailed")
async def test_a_check_that_does_more_than_look_is_not_run_whoever_wrote_it(tmp_path):
    async with learning_place(tmp_path, Script([Say("Hi.")])) as here:
        probes = Probes(place=here.runtime.skills.place, tools=tuple, ids=RandomIds(), seconds=3.0)
        work = tmp_path / "work"
        (work / "precious").write_text("mine")
        assert not await probes("rm -rf precious", str(work))
        assert not await probes("echo gone > precious", str(work))

        assert (work / "precious").read_text() == "mine"


async def test_where_nothing_can_run_no_check_passes(tmp_path):
    class Nowhere:
        async def start(self, exec_id: str, command: Command):
            raise PlaceFailed(f"{exec_id}: {command.text} cannot run.")

    assert not await Probes(place=Nowhere(), tools=tuple, ids=RandomIds())("true", str(tmp_path))
