"""A call of no run: no deadline, no work for others, and nothing to take up again."""

import pytest

from hermes_agent.core.errors import ToolError
from hermes_agent.core.tool import RunlessCall


async def test_a_call_of_no_run_calls_nothing_delegates_nothing_and_ends_here():
    call = RunlessCall()
    await call.hold("handle")

    assert call.ends()
    assert call.seconds_left() is None
    with pytest.raises(ToolError, match="delegates"):
        call.delegating({"a": "goal"})
    with pytest.raises(ToolError, match="`terminal`"):
        await call.use("terminal", {})
