"""Calls that a server goes on with as tasks: followed to their end, taken up after a crash, and ended with the call."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hermes_agent.core.effects import Effect, Location
from hermes_agent.core.errors import OutcomeUnknown, ToolError
from tests.app.mcp.calling import TASKS, Calling, calling, plain


def tasking(*more: str, **settings: object) -> dict:
    return {"t": plain(TASKS, **{"args": (TASKS.name, ".", *more), **settings})}


def lines(call: Calling, file: str) -> list[str]:
    path = call.workspace / file
    return path.read_text().split("\n")[:-1] if path.exists() else []


async def test_a_task_is_followed_to_its_end(tmp_path: Path):
    async with calling(tmp_path, tasking()) as call:
        context = call.context()
        said = await call("mcp__t__work", context, name="this")
        effects = {name: tool.facts({}, "/").effect for name, tool in call.tools().items() if name.startswith("mcp__")}

        assert said == "did this"
        assert lines(call, "starts") == [context.begun_at.handle]
        assert "working on it" in context.lines
        assert set(effects.values()) == {Effect.EXEC}
        assert await call("mcp__t__quick") == "done"


async def test_a_server_without_tasks_is_not_offered_them(tmp_path: Path):
    async with calling(tmp_path, tasking("bare")) as call:
        assert await call("mcp__t__work") == "did it at once"
        assert call.tools()["mcp__t__work"].facts({}, "/").effect is Effect.WRITES
        assert lines(call, "offers") == ["None"]


async def test_a_task_goes_on_where_its_server_is_started_anew(tmp_path: Path):
    async with calling(tmp_path, tasking()) as call:
        running = asyncio.ensure_future(call("mcp__t__work", seconds=1, name="this"))
        while not lines(call, "looks"):
            await asyncio.sleep(0.02)
        for process in call.processes("t"):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

        assert await running == "did this"
        assert len(lines(call, "starts")) == 1


async def test_a_call_made_again_takes_up_its_task_or_says_that_nobody_knows(tmp_path: Path):
    async with calling(tmp_path, tasking()) as call:
        begun = {"until": time.time() + 0.3, "tool": "work", "given": {"name": "this"}}
        (call.workspace / "t1.json").write_text(json.dumps(begun))

        assert await call("mcp__t__work", call.context(attach=True, begun_at=Location(handle="t1"))) == "did this"
        for where in (Location(), Location(handle="gone")):
            with pytest.raises(OutcomeUnknown, match="is unknown"):
                await call("mcp__t__work", call.context(attach=True, begun_at=where))
        assert lines(call, "starts") == []


async def test_a_stop_ends_the_task(tmp_path: Path):
    async with calling(tmp_path, tasking()) as call:
        running = asyncio.ensure_future(call("mcp__t__work", seconds=60))
        while not lines(call, "looks"):
            await asyncio.sleep(0.02)
        running.cancel()
        await asyncio.wait((running,))

        assert lines(call, "ends") == lines(call, "starts")
        assert await call("mcp__t__quick") == "done"


async def test_a_task_of_a_run_that_is_left_to_another_process_goes_on(tmp_path: Path):
    async with calling(tmp_path, tasking()) as call:
        running = asyncio.ensure_future(call("mcp__t__work", call.context(ends=lambda: False), seconds=60))
        while not lines(call, "looks"):
            await asyncio.sleep(0.02)
        running.cancel()
        await asyncio.wait((running,))

        assert await call("mcp__t__quick") == "done"
        assert lines(call, "ends") == []


async def test_a_task_may_take_longer_than_an_answer(tmp_path: Path):
    async with calling(tmp_path, tasking(timeout=1)) as call:
        assert await call("mcp__t__work", seconds=1.5) == "did it"


async def test_a_task_that_asks_and_one_that_fails(tmp_path: Path):
    async with calling(tmp_path, tasking()) as call:
        context = call.context(answers=['{"name": "Ann"}'])
        assert await call("mcp__t__ask", context) == '{"action": "accept", "content": {"name": "Ann"}}'
        assert await call("mcp__t__ask") == '{"action": "decline"}'
        assert len(context.asked) == 1
        with pytest.raises(ToolError, match="it is broken"):
            await call("mcp__t__fail")
