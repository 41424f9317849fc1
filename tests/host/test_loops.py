"""The loop of a server: the fast one where there is one."""

import asyncio
from importlib.util import find_spec

from hermes_agent.host.loops import FAST, run


async def loop_module() -> str:
    return type(asyncio.get_running_loop()).__module__


def test_the_fast_loop_is_used_where_it_is_installed():
    assert run(loop_module()).startswith(FAST) is (find_spec(FAST) is not None)


def test_without_it_python_s_own_serves():
    assert run(loop_module(), fast="no_such_loop").startswith("asyncio")
