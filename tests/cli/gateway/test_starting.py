"""Waiting for a gateway: what is said where there is none, or where it takes too long."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_agent.cli.gateway import starting
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
from hermes_agent.core.errors import HermesError
from hermes_agent.gateway.state import state_file
from hermes_agent.host.paths import Home

SLEEPS = "import signal; signal.signal({number}, signal.SIG_IGN); print(1, flush=True); signal.pause()"


def gateway_like(home: Home, number: int = signal.SIGWINCH) -> subprocess.Popen[bytes]:
    """A process that its file calls a gateway, and that does not heed one signal."""
    process = subprocess.Popen([sys.executable, "-c", SLEEPS.format(number=number)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    path = state_file(home, process.pid)
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'{{"pid": {process.pid}, "started": 1, "phase": "starting", "channels": {{}}}}')
    return process


def over(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_where_none_runs_there_is_nothing_to_end_or_to_begin_again(tmp_path: Path):
    home = Home(root=tmp_path, base=tmp_path)

    for act in (starting.stop, starting.restart):
        with pytest.raises(HermesError, match="No gateway runs"):
            act(home, 0.0)


def test_one_that_still_ends_is_named(tmp_path: Path):
    home = Home(root=tmp_path, base=tmp_path)
    process = gateway_like(home, signal.SIGTERM)

    with pytest.raises(HermesError, match=f"Process {process.pid} is still stopping"):
        starting.stop(home, -starting.SPARE_SECONDS)
    over(process)


def test_one_that_does_not_come_back_is_told_with_its_last_words(tmp_path: Path):
    home = Home(root=tmp_path, base=tmp_path).ensure()
    starting.output_file(home).write_text("It broke.\n")
    for number in (signal.SIGWINCH, starting.RESTART):  # One dies of the signal, one goes on as it was.
        process = gateway_like(home, number)
        with pytest.raises(HermesError, match=r"did not restart\.\nIt broke\."):
            starting.restart(home, -starting.SPARE_SECONDS, 0.5)
        over(process)


def test_one_that_takes_its_time_is_told_as_it_is(tmp_path: Path):
    home = Home(root=tmp_path, base=tmp_path)
    variables = {"HERMES_HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path), "PATH": os.environ["PATH"]}
    surface = Surface(invocation=Invocation(), variables=variables)

    with pytest.raises(HermesError, match=r"runs and has said nothing for 0 s"):
        starting.start(surface, 0.0)
    while not (states := starting.read_states(home)):
        pass
    os.kill(states[0].pid, signal.SIGKILL)


def test_a_profile_is_passed_on(tmp_path: Path):
    surface = Surface(invocation=Invocation(profile="work"), variables={"HERMES_HOME": str(tmp_path)})

    assert starting.command_of(surface)[1:] == ["-m", "hermes_agent", "-p", "work", "gateway", "run"]
    assert starting.last_words(surface.home) == ""
