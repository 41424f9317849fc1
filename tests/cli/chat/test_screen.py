import os
import pty
import struct
import termios
from collections.abc import Iterator
from fcntl import ioctl

import pytest

from hermes_agent.cli.chat.screen import Screen, terminal
from hermes_agent.testing.clock import FakeClock


@pytest.fixture
def screen(request: pytest.FixtureRequest) -> Iterator[Screen]:
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 50, 0, 0))
    with os.fdopen(slave, "w") as stream:
        screen = Screen(output=terminal(stream, {"TERM": "xterm"}), clock=FakeClock(), colours=False)
        screen.master = master
        yield screen
    os.close(master)


def test_lines_are_shown_at_the_next_refresh(screen: Screen):
    screen.write("one\ntwo")
    screen.refresh()
    assert os.read(screen.master, 100) == b"one\r\ntwo\r\n"


def test_without_colours_there_are_none(screen: Screen):
    screen.say("\x1b[31mred\x1b[0m")
    assert os.read(screen.master, 100) == b"red\r\n"


def test_the_last_column_stays_free(screen: Screen):
    assert (screen.width, screen.height) == (49, 20)


def test_the_terminal_is_not_asked_where_its_cursor_is(screen: Screen):
    assert not screen.output.responds_to_cpr
