"""A process that serves ends when it is told to."""

import asyncio
import os
import signal

import pytest

from hermes_agent.cli.serving import announce, until_told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_waiting(number):
    waiting = asyncio.ensure_future(until_told())
    await asyncio.sleep(0)
    assert not waiting.done()
    os.kill(os.getpid(), number)
    await asyncio.wait_for(waiting, 5)


def test_an_announcement_is_a_line(capsys):
    announce("Here.")
    assert capsys.readouterr().out == "Here.\n"
