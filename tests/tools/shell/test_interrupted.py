"""Calls of the terminal that a crash interrupted, where the record of their command is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.core.errors import OutcomeUnknown
from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.testing.place import FakePlace, FakeRunning
from hermes_agent.tools.schema import collect
from hermes_agent.tools.settings import TerminalSettings
from hermes_agent.tools.shell import ShellTools
from tests.tools.bench import Bench, words


@pytest.mark.parametrize("change", ["machine", "place", "boot"])
async def test_a_call_that_was_interrupted_elsewhere_is_unknown_and_starts_nothing(
    make_shell: Callable[..., Bench], workspace: Path, change: str
) -> None:
    shell = make_shell()
    elsewhere = replace(await shell.location(), **{change: "otherhost"})

    with pytest.raises(OutcomeUnknown) as caught:
        await shell.answer("terminal", {"command": "touch ran"}, attach=True, begun_at=elsewhere)

    assert str(caught.value) == (
        "Interrupted: there is no record of this command here. "
        f"It was to run on {elsewhere.machine}. Whether it ran is unknown: it may have ended, or still run."
    )
    assert caught.value.hint == "Check what it did before you do it again."
    assert not await asyncio.to_thread((workspace / "ran").exists)


async def test_a_call_that_was_interrupted_before_its_command_began_here_starts_it(
    make_shell: Callable[..., Bench],
) -> None:
    shell = make_shell()

    answer = await shell.answer("terminal", {"command": "echo ran"}, attach=True, begun_at=await shell.location())

    assert words(answer) == "ran\n[exit 0]"


async def test_a_command_whose_record_was_forgotten_is_unknown_and_not_run_again(
    make_shell: Callable[..., Bench], tmp_path: Path, workspace: Path
) -> None:
    shell = make_shell()
    before = await shell.location()
    await shell.answer("terminal", {"command": "echo run | tee -a count"}, call="call_x")
    await LocalPlace(folder=tmp_path / "exec", env={}).prune(0, 0)

    with pytest.raises(OutcomeUnknown):
        await make_shell().answer(
            "terminal", {"command": "echo run | tee -a count"}, call="call_x", attach=True, begun_at=before
        )

    assert await asyncio.to_thread((workspace / "count").read_text) == "run\n"


async def test_a_command_in_a_place_that_cannot_be_asked_is_unknown(workspace: Path) -> None:
    class Away(FakePlace):
        async def attach(self, exec_id: str) -> FakeRunning | None:
            raise PlaceFailed("box.test cannot be reached.")

    tools, _ = collect([ShellTools(place=Away(), settings=TerminalSettings())])

    with pytest.raises(OutcomeUnknown, match=r"^Interrupted: box.test cannot be reached\. Whether it ran is unknown"):
        await Bench(tools, workspace).answer("terminal", {"command": "true"}, attach=True)
