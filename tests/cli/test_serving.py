"""A process that serves ends when it is told to."""

import asyncio
import os
import signal

import pytest

from hermes_agent.cli.serving import announce, told_to_end


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_waiting(number):
    with told_to_end() as told:
        assert not told.is_set()
        os.kill(os.getpid(), number)
        await asyncio.wait_for(told.wait(), 5)


def test_an_announcement_is_a_line(capsys):
    announce("Here.")
    assert capsys.readouterr().out == "Here.\n"
