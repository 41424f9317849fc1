"""What is kept of a command's output holds no secret, whatever became of the command."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.jail import JAILS, CannotJail, jail_of, scrubbed
from hermes_agent.sandbox.walls import Walls
from hermes_agent.tools.handles import OpenHandles
from hermes_agent.tools.output import Hiding
from hermes_agent.tools.schema import collect
from hermes_agent.tools.settings import SecretUse, TerminalSettings
from hermes_agent.tools.shell import ShellTools
from tests.tools.bench import Bench, Context, words
from tests.tools.shell.test_shell import id_in, until

HIDING = Hiding(
    redact=lambda text: text.replace("hunter2-hunter2", "[secret KEY]"),
    mask=lambda text: text.replace("hunter2-hunter2", "[secret KEY]***"),
)


async def test_what_is_kept_of_a_command_holds_no_secret_however_it_ended(tmp_path: Path, workspace: Path) -> None:
    place = LocalPlace(folder=tmp_path / "exec", env=scrubbed(os.environ))
    tools, _ = collect(
        [
            ShellTools(
                place=place,
                settings=TerminalSettings(),
                hiding=HIDING,
            )
        ]
    )
    shell = Bench(tools, workspace)

    await shell("terminal", command="echo hunter2-hunter2; seq 50000")
    await shell("terminal", command="echo hunter2-hunter2; sleep 60", timeout=1)
    stopped = asyncio.ensure_future(shell("terminal", command="echo hunter2-hunter2; touch ready; sleep 60"))
    await until(workspace / "ready")
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped

    outputs = [path.read_text() for path in (tmp_path / "exec").glob("*/*/out")]
    assert len(outputs) == 3
    assert [output[:13] for output in outputs] == ["[secret KEY]\n"] * 3


@pytest.mark.parametrize("kind", ["", *JAILS])
async def test_a_handle_is_a_value_in_a_jail_too_and_no_record_holds_it(
    kind: str, tmp_path: Path, workspace: Path
) -> None:
    home = tmp_path / "home"
    walls = Walls(closed=(str(home),), lends=str(home / "secrets"))
    try:
        jail = jail_of(kind, walls) if kind else None
    except CannotJail as reason:
        pytest.skip(str(reason))
    place = LocalPlace(folder=home / "exec", env=scrubbed(os.environ), jail=(lambda: jail) if jail else None)
    (terminal, _), _ = collect([ShellTools(place=place, settings=TerminalSettings(), hiding=HIDING)])
    uses = {"KEY": SecretUse(commands=("test *",))}
    tool = OpenHandles(terminal, lambda _: "hunter2-hunter2", uses, home / "secrets")
    context = Context(workspace=str(workspace), session="s1")

    command = 'test "${secret:KEY}" = "hunter2""-hunter2" && echo same'
    answer = await tool.run({"command": command}, context)

    assert words(answer) == "same\n[exit 0]"
    assert "hunter2-hunter2" not in "".join(path.read_text() for path in home.rglob("*") if path.is_file())


async def test_what_a_command_in_the_background_wrote_is_covered_at_each_look_and_at_its_end(
    tmp_path: Path, workspace: Path
) -> None:
    place = LocalPlace(folder=tmp_path / "exec", env=scrubbed(os.environ))
    shell = Bench(collect([ShellTools(place=place, settings=TerminalSettings(), hiding=HIDING)])[0], workspace)
    text = "echo hunter2-hunter2; touch ready; until [ -e go ]; do sleep 0.02; done; echo hunter2-hunter2; touch done"
    started = await shell("terminal", command=text, background=True)
    name = id_in(started)
    await until(workspace / "ready")
    (out,) = (tmp_path / "exec").glob("*/*/out")

    assert await shell("process", action="poll", id=name) == "[secret KEY]***\n[running]"
    assert out.read_text() == "[secret KEY]***\n"
    (workspace / "go").touch()
    await until(workspace / "done")
    assert (await shell("process", action="wait", id=name)).startswith("[secret KEY]***\n[exit 0")
    assert out.read_text() == "[secret KEY]***\n" * 2


async def test_nobody_need_look_for_it_to_be_covered(tmp_path: Path, workspace: Path) -> None:
    place = LocalPlace(folder=tmp_path / "exec", env=scrubbed(os.environ))
    shell = Bench(collect([ShellTools(place=place, settings=TerminalSettings(), hiding=HIDING)])[0], workspace)
    await shell("terminal", command="echo hunter2-hunter2", background=True)
    async with asyncio.timeout(10):
        while not [path for path in (tmp_path / "exec").glob("*/*/out") if "[secret KEY]" in path.read_text()]:
            await asyncio.sleep(0.02)


async def test_a_large_output_is_covered_while_it_is_written(tmp_path: Path, workspace: Path) -> None:
    place = LocalPlace(folder=tmp_path / "exec", env=scrubbed(os.environ))
    shell = Bench(collect([ShellTools(place=place, settings=TerminalSettings(), hiding=HIDING)])[0], workspace)
    text = "echo hunter2-hunter2; yes words | head -c 9000000; echo hunter2-hunter2; sleep 1; echo hunter2-hunter2"
    await shell("terminal", command=text)

    (out,) = (tmp_path / "exec").glob("*/*/out")
    content = out.read_text()
    assert content.count("[secret KEY]***\n") == 3
    assert "hunter2" not in content
    assert len(content) == 9_000_000 + 3 * 16
