"""What a gateway's process is told, and what it tells outside; see also `tests/cli/commands/test_gateway.py`."""

import asyncio
import os
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path

import pytest

from hermes_agent.cli.gateway.serving import Sign, StopRequests, serve_again
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
from hermes_agent.gateway.state import Phase, read_state
from hermes_agent.host.loops import ends_within
from hermes_agent.host.paths import Home
from hermes_agent.host.process import run
from hermes_agent.host.systemd import Supervisor


def test_the_last_word_counts_but_an_end_is_not_taken_back():
    told = StopRequests(over=asyncio.Event())
    told.restart()
    told.restart()
    assert told.again
    told.end()
    told.restart()
    assert told.over.is_set()
    assert not told.again


def test_who_is_told_to_end_a_second_time_waits_for_nothing_and_takes_no_restart():
    hurried: list[int] = []
    told = StopRequests(over=asyncio.Event(), hurry=lambda: hurried.append(1))
    told.end()
    assert told.over.is_set()
    assert hurried == []
    told.again = True
    told.end()
    ends_within(0)
    assert hurried == [1]
    assert not told.again


def test_a_home_that_cannot_be_written_ends_no_gateway(tmp_path: Path):
    (tmp_path / "run").mkdir()
    home = Home(root=tmp_path, base=tmp_path)
    sign = Sign(home=home, started=1.0, supervisor=Supervisor({}))
    sign.now(Phase.READY, "READY=1")
    state = read_state(home)
    assert state is not None
    assert state.phase is Phase.READY
    (tmp_path / "run" / f"gateway-{state.pid}.json").unlink()
    (tmp_path / "run" / f"gateway-{state.pid}.json").mkdir()

    sign.write()


def test_how_a_channel_is_now_is_told_once_and_again_when_it_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    sign = Sign(home=Home(root=tmp_path, base=tmp_path), started=1.0, supervisor=Supervisor({}))
    for state in [
        ("starting", ""),
        ("listening", ""),
        ("listening", ""),
        ("waiting", "No network."),
        ("listening", ""),
    ]:
        sign.show({"telegram": state})

    told = capsys.readouterr().out.splitlines()
    assert told == ["telegram: listening", "telegram: waiting: No network.", "telegram: listening"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_channel_goes_on_where_nobody_can_be_told_how_it_is(tmp_path: Path):
    sign = Sign(home=Home(root=tmp_path, base=tmp_path), started=1.0, supervisor=Supervisor({}))
    with suppress(OSError), Path("/dev/full").open("w") as full, redirect_stdout(full):
        sign.show({"telegram": ("listening", "")})
        sign.show({"telegram": ("waiting", "No network.")})

    assert sign.shown == {"telegram": "telegram: waiting: No network."}


BEGINS_AGAIN = """
import os, sys
import pytest

from hermes_agent.cli.gateway.serving import serve_again
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
serve_again(Surface(invocation=Invocation(), variables=os.environ), sys.argv[1])
"""


async def test_what_it_is_asked_while_it_begins_again_does_not_end_it(tmp_path: Path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nkill -USR1 $$\nkill -USR2 $$\necho there\n")
    program.chmod(0o700)

    done = await run([sys.executable, "-c", BEGINS_AGAIN, str(program)], env=os.environ)

    assert (done.code, done.out) == (0, b"there\n")


def test_where_the_system_does_not_let_it_begin_again_it_has_ended(tmp_path: Path):
    assert not serve_again(
        Surface(invocation=Invocation(), variables={"HERMES_HOME": str(tmp_path)}), "/nowhere/python"
    )
