"""What takes long is told, on one line at a terminal."""

import io

from hermes_agent.cli.skills.shelf import Waiting
from hermes_agent.testing.clock import FakeClock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


async def test_nothing_is_said_for_two_seconds():
    heard = io.StringIO()
    clock = FakeClock()
    waiting = Waiting(clock, heard)
    waiting.hear("them", 0)
    await clock.advance(1.9)
    waiting.hear("them", 100)
    waiting.end()
    assert heard.getvalue() == ""


async def test_a_file_gets_a_line_every_ten_seconds():
    heard = io.StringIO()
    clock = FakeClock()
    waiting = Waiting(clock, heard)
    for _ in range(14):
        await clock.advance(1)
        waiting.hear("them\x1b[2J", 1_500_000)
    assert heard.getvalue().splitlines() == [
        "Fetching them\N{REPLACEMENT CHARACTER}[2J: 1.5 MB, 2 s",
        "Fetching them\N{REPLACEMENT CHARACTER}[2J: 1.5 MB, 12 s",
    ]


async def test_a_terminal_has_one_line_that_goes_away():
    heard = Terminal()
    clock = FakeClock()
    waiting = Waiting(clock, heard)
    await clock.advance(3)
    waiting.hear("them", 2_000_000)
    waiting.end()
    waiting.end()
    assert heard.getvalue() == "\r\x1b[KFetching them: 2.0 MB, 3 s\r\x1b[K"
