"""A program calls tools from every place, and is ended in every place."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from hermes_agent.core.messages import Origin
from hermes_agent.core.tool import Answer
from hermes_agent.sandbox.place import Command, Place
from hermes_agent.tools.code import CodeTools
from hermes_agent.tools.schema import collect, said
from hermes_agent.tools.settings import CodeSettings
from tests.tools.bench import Bench, words

pytestmark = pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="containers here show no python3")
ECHO = """
import os
text = tools.read_file(path="a")
print(len(text), text[:2], tools.terminal(command=str(len(text))))
try:
    tools.terminal(command="fails")
except tools.ToolFailed as error:
    print("failed:", error)
print(os.path.basename(os.getcwd()))
"""


@pytest.fixture
def bench(place: Place, plain: Command) -> Bench:
    tools, _ = collect([CodeTools(place=place, settings=CodeSettings())])
    return Bench(tools, Path(plain.folder))


def give(name: str, arguments: Mapping[str, object]) -> Answer:
    if name == "read_file":
        return said("ü" * 100_000, Origin.TOOL)
    return said(f"<{arguments['command']}>", Origin.TOOL, is_error=arguments["command"] == "fails")


async def test_a_program_works_with_what_tools_say_and_only_its_words_come_back(bench: Bench) -> None:
    context = bench.context(calls_give=give)

    answer = await bench.tools["execute_code"].run({"code": ECHO}, context)

    assert words(answer) == "100000 üü <100000>\nfailed: <fails>\nwork"
    assert [name for name, _ in context.called] == ["read_file", "terminal", "terminal"]


async def test_a_program_that_is_stopped_leaves_nothing(bench: Bench, place: Place) -> None:
    called = asyncio.Event()

    def note(name: str, arguments: Mapping[str, object]) -> Answer:
        called.set()
        return said("", Origin.TOOL)

    code = "tools.read_file()\nimport time\ntime.sleep(60)"
    running = asyncio.ensure_future(bench.tools["execute_code"].run({"code": code}, bench.context(calls_give=note)))
    async with asyncio.timeout(20):
        await called.wait()

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    (exec_id,) = await place.list(bench.session)
    program = await place.attach(exec_id)
    assert program is not None
    ended = await program.poll()
    assert ended is not None
    assert not ended.children
