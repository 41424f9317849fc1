"""The loop of a server: the fast one where there is one."""

import asyncio
import gc
import os
import signal
from importlib.util import find_spec

import pytest

from hermes_agent.cli.main import QUIET
from hermes_agent.host.loops import COLLECTED, FAST, run, told_to_end


async def loop_module() -> str:
    return type(asyncio.get_running_loop()).__module__


def test_the_fast_loop_is_used_where_it_is_installed():
    assert run(loop_module()).startswith(FAST) is (find_spec(FAST) is not None)


def test_without_it_python_s_own_serves():
    assert run(loop_module(), fast="no_such_loop").startswith("asyncio")


def test_what_a_server_made_at_its_start_is_not_collected_again_and_later_looks_are_short():
    before = gc.get_threshold()
    gc.set_threshold(QUIET, 20, 20)
    try:
        run(asyncio.sleep(0.05), settled=0.0)

        assert gc.get_freeze_count() > 1_000
        assert gc.get_threshold()[0] == COLLECTED
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_the_waiting(number):
    with told_to_end(0.0) as told:
        assert not told.is_set()
        os.kill(os.getpid(), number)
        await asyncio.wait_for(told.wait(), 5)
