"""How a gateway is, told through a file; one that died without a word is not running."""

import os
import subprocess
import sys
from pathlib import Path

from hermes_agent.gateway.channel_runtime import made
from hermes_agent.gateway.state import Phase, forget_state, read_state, read_states, state_file, state_of, write_state
from hermes_agent.host.paths import Home
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.clock import FakeClock


def test_a_gateway_tells_how_its_channels_are(tmp_path: Path):
    home, platform = Home(root=tmp_path, base=tmp_path), FakePlatform()
    line = made(platform.kind(), platform.made(None), FakeClock(now=5.0))
    line.ailment = "The token is wrong."

    write_state(home, state_of(1.0, {"fake": line}))

    state = read_state(home)
    assert state is not None
    assert (state.pid, state.started) == (os.getpid(), 1.0)
    assert state.channels["fake"].ailment == "The token is wrong."
    forget_state(home)
    assert read_state(home) is None


def test_a_gateway_is_settled_when_each_channel_has_listened_or_said_why_not(tmp_path: Path):
    home, platform = Home(root=tmp_path, base=tmp_path), FakePlatform()
    line = made(platform.kind(), platform.made(None), FakeClock(now=5.0))

    write_state(home, state_of(1.0, {"fake": line}, phase=Phase.STARTING))
    assert not settled(home)
    write_state(home, state_of(1.0, {"fake": line}, phase=Phase.READY))
    assert not settled(home)
    line.ailment = "The platform does not answer."
    write_state(home, state_of(1.0, {"fake": line}, phase=Phase.READY))
    assert settled(home)
    line.state, line.ailment = "waiting", ""
    write_state(home, state_of(1.0, {"fake": line}, phase=Phase.READY))
    assert settled(home)


def settled(home: Home) -> bool:
    state = read_state(home)
    assert state is not None
    return state.settled


def test_two_gateways_of_one_home_are_both_known_and_the_newest_comes_first(tmp_path: Path):
    home = Home(root=tmp_path, base=tmp_path)
    write_state(home, state_of(2.0, {}))
    other = os.getppid()
    state_file(home, other).write_text(f'{{"pid": {other}, "started": 1, "channels": {{}}}}')

    assert [state.pid for state in read_states(home)] == [os.getpid(), other]
    forget_state(home)
    assert [state.pid for state in read_states(home)] == [other]


def test_a_gateway_that_died_is_not_running_and_what_it_left_is_taken_away(tmp_path: Path):
    home = Home(root=tmp_path, base=tmp_path)
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    mine = os.getpid()  # Its number, given to another process meanwhile.
    (tmp_path / "run").mkdir()

    for pid, content in (
        (child.pid, f'{{"pid": {child.pid}, "started": 1, "channels": {{}}}}'),
        (mine, f'{{"pid": {mine}, "started": 1, "born": 1, "channels": {{}}}}'),
        (child.pid, "{"),
    ):
        state_file(home, pid).write_text(content)
        assert read_state(home) is None
        assert not list((tmp_path / "run").iterdir())
