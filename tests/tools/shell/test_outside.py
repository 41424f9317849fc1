"""A command that the wall stopped says so, and runs outside only where it was let out."""

from __future__ import annotations

from hermes_agent.sandbox.place import Command
from hermes_agent.testing.place import FakePlace, Play
from hermes_agent.tools.settings import TerminalSettings
from hermes_agent.tools.shell import ShellTools
from tests.tools.bench import Context


def refused(command: Command) -> Play:
    return Play(output=b"ok\n") if command.outside else Play(output=b"touch: /srv/x: Read-only file system\n", code=1)


def shell(wall: str = "landlock") -> tuple[ShellTools, FakePlace]:
    fake = FakePlace(plays=refused, walled=wall)
    return ShellTools(place=fake, settings=TerminalSettings()), fake


async def ran(tools: ShellTools, context: Context) -> str:
    return (await tools.terminal("touch /srv/x", context, outside=True)).parts[0].text


async def test_what_the_wall_stopped_is_told_with_the_way_out() -> None:
    tools, fake = shell()
    context = Context("/w")

    assert "outside=true asks the person" in await ran(tools, context)
    assert "Read-only file system" in tools.outside.stopped(context.session, "touch /srv/x")
    assert not fake.started[0].command.outside


async def test_only_a_call_that_was_let_out_runs_outside_and_only_once() -> None:
    tools, fake = shell()
    first, second = Context("/w", call="a"), Context("/w", call="b")
    tools.outside.let_out(first.key)

    assert await ran(tools, first) == "ok\n[exit 0]"
    await ran(tools, second)
    assert [each.command.outside for each in fake.started] == [True, False]


async def test_without_a_wall_a_failure_is_a_failure() -> None:
    tools, _ = shell(wall="")

    assert "outside=true" not in await ran(tools, Context("/w"))
