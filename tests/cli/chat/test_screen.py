import asyncio
import os
import pty
import struct
import termios
from collections.abc import Iterator
from fcntl import ioctl
from select import select

import pytest
from prompt_toolkit.application import Application
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.layout import FormattedTextControl, Layout, Window

from hermes_agent.cli.chat.screen import END_FRAME, Screen, reflows, rows_over, terminal
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


async def test_with_new_lines_the_status_is_drawn_as_it_is_now(screen: Screen):
    status = ["first"]
    layout = Layout(Window(FormattedTextControl(lambda: status[0])))
    with create_pipe_input() as typed:
        app: Application[None] = Application(layout=layout, input=typed, output=screen.output)
        running = asyncio.create_task(screen.run(app, lambda: False))
        while not app.is_running or not app.render_counter:
            await asyncio.sleep(0.01)
        os.read(screen.master, 10_000)

        status[0] = "second"
        screen.write("a line")
        screen.refresh()

        frame = b""
        while END_FRAME.encode() not in frame:
            frame += os.read(screen.master, 10_000)
        assert b"a line" in frame
        assert b"second" in frame
        app.exit()
        await running


async def test_what_comes_quickly_is_drawn_together(screen: Screen):
    with create_pipe_input() as typed:
        app: Application[None] = Application(layout=Layout(Window()), input=typed, output=screen.output)
        running = asyncio.create_task(screen.run(app, lambda: False))
        while not app.is_running or not app.render_counter:
            await asyncio.sleep(0.01)
        os.read(screen.master, 10_000)

        for number in range(50):
            screen.write(f"line {number}")
            screen.refresh()
        frames = b""
        while b"line 49" not in frames:
            await asyncio.sleep(0.01)
            frames += os.read(screen.master, 10_000) if select([screen.master], [], [], 0)[0] else b""
        app.exit()
        await running

    assert frames.count(END_FRAME.encode()) <= 2
    assert [frames.count(b"line %d\r" % number) for number in range(50)] == [1] * 50


def test_without_colours_there_are_none(screen: Screen):
    screen.say("\x1b[31mred\x1b[0m")
    assert os.read(screen.master, 100) == b"red\r\n"


def test_the_last_column_stays_free(screen: Screen):
    assert (screen.width, screen.height) == (49, 20)


def test_the_terminal_is_not_asked_where_its_cursor_is(screen: Screen):
    assert not screen.output.responds_to_cpr


def test_lines_that_a_narrower_terminal_breaks_are_counted():
    assert rows_over([0, 40, 41, 80, 81, 3], 40) == 4
    assert rows_over([80], 80) == 0


@pytest.mark.parametrize(
    ("variables", "breaks"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "tmux-256color", "TMUX": "x", "STY": "y"}, True),
        ({"TERM": "xterm", "XTERM_VERSION": "XTerm(379)"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM": "screen", "STY": "1.pts"}, False),
    ],
)
def test_terminals_that_cut_lines_instead_of_breaking_them_are_known(variables: dict[str, str], breaks: bool):
    assert reflows(variables) is breaks
