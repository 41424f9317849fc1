"""A checkpoint comes before the first change of a turn, in the real system."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.agent.agent import Proposed
from hermes_agent.app.checkpoints import CheckpointHook
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import ToolCall
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.clock import FakeClock
from hermes_agent.testing.place import FakePlace
from hermes_agent.tools.checkpoints.checkpoints import Checkpoints
from hermes_agent.tools.schema import collect
from hermes_agent.tools.settings import CheckpointSettings, TerminalSettings
from hermes_agent.tools.shell import ShellTools
from tests.app.place import place
from tests.tools.bench import Context


def write(name: str, content: str, call: str) -> Call:
    return Call("write_file", {"path": name, "content": content}, id=call)


async def test_the_folder_is_kept_once_a_turn_and_rolled_back_by_a_command(tmp_path: Path):
    script = [write("new.txt", "one", "a"), write("new.txt", "two", "b"), Say("Done.")]
    async with place(tmp_path, script) as here:
        work = Path(here.record.workspace)
        (work / "own.txt").write_text("mine")
        await here.say("Write")
        listed = await here.type("/rollback")
        changed = await here.type("/rollback diff 1")
        back = await here.type("/rollback 1")

        assert listed is not None
        assert len(listed.text.splitlines()) == 2
        assert "before write_file: new.txt" in listed.text
        assert changed is not None
        assert "+two" in changed.text
        assert back is not None
        assert "new.txt (removed)" in back.text
        assert not (work / "new.txt").exists()
        assert (work / "own.txt").read_text() == "mine"

        await here.type("/rollback 3")
        assert (work / "new.txt").read_text() == "two"


async def test_reading_takes_none(tmp_path: Path):
    async with place(tmp_path, [Call("search_files", {"pattern": "x"}), Say("Done.")]) as here:
        await here.say("Look")
        listed = await here.type("/rollback")

        assert listed is not None
        assert listed.text == "No checkpoint of this folder was taken yet."


async def test_a_rollback_that_cannot_be_is_told(tmp_path: Path):
    async with place(tmp_path, [Say("Done.")]) as here:
        for line, words in {"/rollback x": "Say `/rollback`", "/rollback 3": "no checkpoints of"}.items():
            with pytest.raises(HermesError, match=words):
                await here.type(line)


async def test_a_person_who_waits_for_a_checkpoint_is_told_for_what(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    tools = collect([ShellTools(place=FakePlace(), settings=TerminalSettings())])[0]
    shell = {each.schema.name: each for each in tools}["terminal"]
    context, arguments = Context(workspace=str(work)), {"command": "make"}
    checkpoints = Checkpoints(tmp_path / "kept", CheckpointSettings(), FakeClock())
    hook = CheckpointHook(checkpoints=checkpoints, person=Path("/nobody"), patience=0)

    await hook.before_call(
        Proposed(
            call=ToolCall(id="a", name="terminal", arguments=arguments),
            tool=shell,
            arguments=arguments,
            facts=shell.facts(arguments, str(work)),
            context=context,
        )
    )

    assert context.lines == ["saving a checkpoint of the folder"]
    assert [each.number for each in await checkpoints.of(work)] == [1]
