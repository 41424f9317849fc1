"""How a gateway is, told through a file; one that died without a word is not running."""

import os
import subprocess
import sys
from pathlib import Path

from hermes_agent.gateway.line import made
from hermes_agent.gateway.state import forget_state, read_state, state_file, write_state
from hermes_agent.host.paths import Home
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.clock import FakeClock


def test_a_gateway_tells_how_its_channels_are(tmp_path: Path):
    home, platform = Home(root=tmp_path, base=tmp_path), FakePlatform()
    line = made(platform.kind(), platform.made(None), FakeClock(now=5.0))
    line.ailment = "The token is wrong."

    write_state(home, 1.0, {"fake": line})

    state = read_state(home)
    assert state is not None
    assert (state.pid, state.started) == (os.getpid(), 1.0)
    assert state.channels["fake"].ailment == "The token is wrong."
    forget_state(home)
    assert read_state(home) is None


def test_a_gateway_that_died_is_not_running(tmp_path: Path):
    home = Home(root=tmp_path, base=tmp_path)
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    state_file(home).parent.mkdir()

    for content in (f'{{"pid": {child.pid}, "started": 1, "channels": {{}}}}', "{"):
        state_file(home).write_text(content)
        assert read_state(home) is None
