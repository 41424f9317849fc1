"""A program calls tools, is bound in time, calls and output, and only what it prints comes back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.core.messages import Origin
from hermes_agent.core.tool import Answer
from hermes_agent.host.process_table import family
from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.jail import scrubbed
from hermes_agent.tools.code import CodeTools
from hermes_agent.tools.schema import collect, said
from hermes_agent.tools.settings import CodeSettings
from tests.tools.bench import Bench, words


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return bench_with(tmp_path, CodeSettings())


def bench_with(folder: Path, settings: CodeSettings) -> Bench:
    env = scrubbed({**os.environ, "SOME_TOKEN": "sk-1"})
    place = LocalPlace(folder=folder / "exec", env=env)
    tools, _ = collect([CodeTools(place=place, settings=settings)])
    (folder / "work").mkdir()
    return Bench(tools, folder / "work")


async def run(bench: Bench, code: str, **changes: object) -> Answer:
    return await bench.answer("execute_code", {"code": code}, **changes)


async def test_only_what_it_prints_comes_back(bench: Bench) -> None:
    answer = await run(bench, "x = 6 * 7\nprint(x, 'käse')\nx")

    assert (words(answer), answer.is_error) == ("42 käse", False)
    assert words(await run(bench, "1")) == "[nothing was printed]"


async def test_it_calls_tools_and_works_with_what_they_say(bench: Bench) -> None:
    context = bench.context()
    code = "import tools\nfound = [tools.read_file(path=f'{n}.txt') for n in range(3)]\nprint(len(found), found[0])"

    answer = await bench.tools["execute_code"].run({"code": code}, context)

    assert words(answer) == "3 read_file said"
    assert context.called == [("read_file", {"path": f"{n}.txt"}) for n in range(3)]


@pytest.mark.parametrize("size", [0, 59_990, 60_010, 500_000])
async def test_large_answers_arrive_whole(bench: Bench, size: int) -> None:
    def give(name: str, arguments: Mapping[str, object]) -> Answer:
        return said("ä\n" * (size // 2), Origin.TOOL)

    answer = await run(bench, "text = tools.read_file()\nprint(len(text), set(text) <= set('ä\\n'))", calls_give=give)

    assert words(answer) == f"{size // 2 * 2} True"


async def test_a_tool_that_fails_raises_and_can_be_caught(bench: Bench) -> None:
    def give(name: str, arguments: Mapping[str, object]) -> Answer:
        return said("No such file.", Origin.TOOL, is_error=True)

    code = (
        "try:\n    tools.read_file()\nexcept tools.ToolFailed as error:\n    print('caught', error)\ntools.read_file()"
    )
    answer = await run(bench, code, calls_give=give)

    assert words(answer).startswith("caught No such file.\nTraceback")
    assert words(answer).endswith("[exit 1]")
    assert answer.is_error


async def test_a_traceback_names_the_line_of_the_code(bench: Bench) -> None:
    answer = await run(bench, "a = 1\n\nraise ValueError('wrong')")

    assert 'File "<code>", line 3' in words(answer)


async def test_what_it_prints_without_a_line_end_is_kept_apart_from_its_calls(bench: Bench) -> None:
    answer = await run(bench, "print('a', end='')\ntools.one()\nprint('b')\ntools.two()\nprint('c', end='')")

    assert words(answer) == "ab\nc"


async def test_too_many_calls_too_much_output_and_too_much_time_end_it(tmp_path: Path) -> None:
    bench = bench_with(tmp_path, CodeSettings(timeout=2, max_calls=3, max_output=1000))
    ends = {
        "for n in range(9): print(n); tools.one()": "called more than 3 tools",
        "while True: print('x' * 100)": "printed more than 1,000 bytes",
        "print('here', flush=True)\nimport time\ntime.sleep(60)": "took more than 2 s",
    }
    for code, note in ends.items():
        answer = await run(bench, code)

        assert note in words(answer), code
        assert answer.is_error


async def test_its_environment_is_scrubbed_and_it_reads_no_input(bench: Bench) -> None:
    answer = await run(bench, "import os, sys\nprint(os.environ.get('SOME_TOKEN'), repr(sys.stdin.read()))")

    assert words(answer) == "None ''"


async def test_a_stop_ends_it_with_what_it_started(bench: Bench, tmp_path: Path) -> None:
    context = bench.context()
    code = "import subprocess\np = subprocess.Popen(['sleep', '60'])\nopen('ready', 'w').close()\np.wait()"
    running = asyncio.ensure_future(bench.tools["execute_code"].run({"code": code}, context))
    async with asyncio.timeout(10):
        while not (await asyncio.to_thread((tmp_path / "work" / "ready").exists)):
            await asyncio.sleep(0.01)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert family(0, f"HERMES_EXEC={tmp_path}/exec/s1/{context.key}".encode()) == []


async def test_calls_of_several_threads_take_turns(bench: Bench) -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    print(sorted(pool.map(lambda n: tools.call(f'tool_{n}'), range(8))))"
    )

    answer = await run(bench, code)

    assert words(answer) == str([f"tool_{number} said" for number in range(8)])


async def test_a_program_cannot_pretend_to_ask(bench: Bench) -> None:
    context = replace(bench.context())
    answer = await bench.tools["execute_code"].run({"code": "print('tool-0123 [\"terminal\", {}]')"}, context)

    assert words(answer) == 'tool-0123 ["terminal", {}]'
    assert context.called == []
