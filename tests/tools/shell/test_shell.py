"""Commands as a model meets them: what it is told, what lasts, and what a stop leaves behind."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import BadArguments, ToolError
from hermes_agent.host.process_table import family
from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.jail import scrubbed
from hermes_agent.tools.schema import collect
from hermes_agent.tools.settings import TerminalSettings
from hermes_agent.tools.shell import Lookout, ShellTools, check_patterns
from tests.tools.bench import Bench, words
from tests.tools.test_output import Output


async def all_found(output: Output, lookout: Lookout) -> list[str]:
    found = []
    while line := await lookout.next_line(output):
        found.append(line)
    return found


async def test_each_line_is_found_once_and_in_order() -> None:
    output = Output(b"ready 1\nnoise\n\x1b[32mready 2\x1b[0m\r\nready")
    lookout = Lookout(["ready"])

    assert await all_found(output, lookout) == ["ready 1", "ready 2", "ready"]
    assert await all_found(output, lookout) == []
    output.content += b"\nready 4\n"
    assert await all_found(output, lookout) == ["ready 4"]


@given(st.lists(st.integers(1, 7), max_size=12))
async def test_a_line_that_comes_in_pieces_is_found_when_it_is_there(sizes: list[int]) -> None:
    whole, output, lookout, found = b"one\nserver is up\nthree\n", Output(b""), Lookout(["is up"]), []
    for size in [*sizes, len(whole)]:
        output.content = whole[: len(output.content) + size]
        found += await all_found(output, lookout)

    assert len(found) == 1
    assert found[0].startswith("server is up")


@pytest.mark.parametrize("pattern", ["(", "(a+)+$", "(x*|y)*z", "x" * 301])
def test_patterns_that_are_none_or_never_end_are_refused(pattern: str) -> None:
    with pytest.raises(BadArguments):
        check_patterns([pattern])


def test_ordinary_patterns_are_not() -> None:
    check_patterns(["listening on \\d+", "(error|failed)", "^done$", "a(b|c)d+"])


STUBBORN = "trap '' TERM HUP; (trap '' TERM; setsid sleep 60 &); echo ready > ready; sleep 61; sleep 62"


@pytest.fixture
async def shell(make_shell: Callable[..., Bench]) -> AsyncIterator[Bench]:
    bench = make_shell()
    yield bench
    for line in (await bench("process", action="list")).splitlines():
        if "running" in line:
            await bench("process", action="kill", id=line.split()[0])


def id_in(answer: str) -> str:
    found = re.search(r"as (\w{6})", answer)
    assert found is not None, answer
    return found[1]


async def until(path: Path) -> None:
    async with asyncio.timeout(10):
        while not await asyncio.to_thread(path.exists):
            await asyncio.sleep(0.01)


async def test_output_and_exit_code_are_told(shell: Bench) -> None:
    assert await shell("terminal", command="echo hello") == "hello\n[exit 0]"
    assert await shell("terminal", command="echo no >&2; exit 3") == "no\n[exit 3]"
    assert await shell("terminal", command="true") == "[exit 0]"


async def test_a_command_that_took_a_while_says_so(shell: Bench) -> None:
    assert re.fullmatch(r"\[exit 0, 1\.\d s\]", await shell("terminal", command="sleep 1.2"))


async def test_directory_and_variables_last_in_the_session_and_only_there(
    shell: Bench, make_shell: Callable[..., Bench], workspace: Path
) -> None:
    await shell("terminal", command="mkdir sub; cd sub; export NAME=x")

    assert await shell("terminal", command="pwd; echo ${NAME-none}") == f"{workspace}/sub\nx\n[exit 0]"
    assert await make_shell("s2")("terminal", command="pwd; echo ${NAME-none}") == f"{workspace}\nnone\n[exit 0]"
    later = await make_shell("s1").answer("terminal", {"command": "pwd; echo ${NAME-none}"}, call="later")
    assert words(later) == f"{workspace}/sub\nx\n[exit 0]"


async def test_a_read_only_call_leaves_directory_and_variables_alone(shell: Bench, workspace: Path) -> None:
    await shell("terminal", command="cd /; export NAME=x", read_only=True)

    assert await shell("terminal", command="pwd; echo ${NAME-none}") == f"{workspace}\nnone\n[exit 0]"


def test_a_call_that_declares_to_change_nothing_is_a_read(shell: Bench) -> None:
    terminal, process = shell.tools["terminal"], shell.tools["process"]

    assert terminal.facts({"command": "ls"}, "/").effect is Effect.EXEC
    assert terminal.facts({"command": "ls", "read_only": True}, "/").effect is Effect.READS
    assert process.facts({"action": "poll", "id": "a"}, "/").effect is Effect.READS
    assert process.facts({"action": "kill", "id": "a"}, "/").effect is Effect.WRITES


async def test_eight_reads_run_side_by_side(shell: Bench) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()

    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(shell("terminal", command="sleep 0.5", read_only=True))

    assert loop.time() - began < 2  # one after the other they take four


async def test_a_working_directory_is_for_one_call(shell: Bench, workspace: Path) -> None:
    assert await shell("terminal", command="pwd", workdir="/usr") == "/usr\n[exit 0]"
    assert await shell("terminal", command="pwd") == f"{workspace}\n[exit 0]"
    with pytest.raises(ToolError, match="does not exist"):
        await shell("terminal", command="pwd", workdir="nowhere")


async def test_a_command_that_takes_too_long_is_ended_and_says_so(shell: Bench) -> None:
    answer = await shell.answer("terminal", {"command": "echo begun; sleep 60", "timeout": 1})

    first, *_, last = words(answer).splitlines()
    assert (first, last) == ("begun", "[the command took more than 1 s and was ended]")
    assert answer.is_error


async def test_the_runs_deadline_is_the_commands_too(shell: Bench) -> None:
    answer = await shell.answer("terminal", {"command": "sleep 60"}, left=0.2)

    assert "and was ended" in words(answer)


@pytest.mark.parametrize("command", ["yes", "trap '' TERM; yes", "for each in 1 2 3; do yes & done; wait"])
async def test_a_command_that_floods_the_disk_is_ended(
    make_shell: Callable[..., Bench], tmp_path: Path, command: str
) -> None:
    answer = await make_shell(max_output_mb=16).answer("terminal", {"command": command})
    kept = await asyncio.to_thread(lambda: max(path.stat().st_size for path in tmp_path.rglob("out")))

    assert "[the command wrote more than 16 MB and was ended]" in words(answer)
    print("XX", kept >> 20)
    assert kept < 160 << 20


async def test_stopping_ends_it_all_within_two_seconds(shell: Bench, workspace: Path) -> None:
    context = shell.context()
    running = asyncio.ensure_future(shell.tools["terminal"].run({"command": STUBBORN}, context))
    await until(workspace / "ready")
    loop = asyncio.get_running_loop()
    began = loop.time()

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert loop.time() - began < 2
    assert family(0, f"HERMES_EXEC={workspace.parent}/exec/s1/{context.key}".encode()) == []


async def test_stopping_while_it_starts_ends_it_too(shell: Bench, workspace: Path) -> None:
    context = shell.context()
    running = asyncio.ensure_future(shell.tools["terminal"].run({"command": "sleep 60"}, context))
    await asyncio.sleep(0)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert family(0, f"HERMES_EXEC={workspace.parent}/exec/s1/{context.key}".encode()) == []


async def test_fifty_megabytes_are_kept_whole_and_shown_as_head_and_tail(shell: Bench) -> None:
    command = "echo first; head -c 50000000 /dev/zero | tr '\\0' 'x' | fold -w 99; echo; echo last"

    answer = await shell("terminal", command=command)

    assert answer.startswith("first\nxxx")
    assert re.search(r"\nlast\n\[exit 0[^\]]*\]$", answer)
    assert len(answer.encode()) <= 50_000
    path = re.search(r"the whole is in (\S+)\]", answer)
    assert path is not None
    assert await asyncio.to_thread(os.path.getsize, path[1]) > 50_000_000


async def test_many_short_lines_are_too_many_too(shell: Bench) -> None:
    answer = await shell("terminal", command="seq 5000")

    assert answer.startswith("1\n2\n")
    assert answer.endswith("\n5000\n[exit 0]")
    assert answer.count("\n") < 2000


async def test_binary_output_is_kept_and_named_as_such(shell: Bench) -> None:
    answer = await shell("terminal", command="head -c 1000 /dev/urandom; printf '\\0'")

    assert re.fullmatch(r"\[the output is binary, 1,001 bytes; it is in \S+\]\n\[exit 0\]", answer)


async def test_odd_bytes_and_colours_are_no_trouble(shell: Bench) -> None:
    answer = await shell("terminal", command=r"printf 'caf\351 and more text\n\033[31mred\033[0m\n10%%\r90%%\n'")

    assert answer == "caf\ufffd and more text\nred\n90%\n[exit 0]"


async def test_secrets_of_the_environment_are_not_seen(make_shell: Callable[..., Bench]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOME_API_KEY", "sk-1234")
        shell = make_shell()

    assert "sk-1234" not in await shell("terminal", command="env")


async def test_a_line_that_is_not_whole_is_not_shown_while_it_runs(shell: Bench) -> None:
    context = shell.context()

    await shell.tools["terminal"].run({"command": "printf 'one\\nhunt'; sleep 0.7; echo er2; sleep 0.7"}, context)

    assert context.lines == ["one", "hunter2"]


async def test_what_runs_long_is_shown_while_it_runs(shell: Bench) -> None:
    context = shell.context()

    await shell.tools["terminal"].run({"command": "echo step one; sleep 0.7; echo step two; sleep 0.7"}, context)

    assert context.lines == ["step one", "step two"]


async def test_a_call_that_was_interrupted_takes_up_its_command_and_starts_none(
    make_shell: Callable[..., Bench], workspace: Path
) -> None:
    arguments = {"command": "echo run >> count; sleep 0.5; echo done; exit 4"}
    first = make_shell()
    spent = asyncio.ensure_future(first.answer("terminal", arguments, call="call_x"))
    await until(workspace / "count")

    again = await make_shell().answer("terminal", arguments, call="call_x", attach=True)

    assert words(again) == "done\n[exit 4]"
    assert words(await spent) == words(again)
    assert await make_shell()("terminal", command="cat count") == "run\n[exit 0]"


async def test_a_call_made_again_without_knowing_it_starts_none_either(
    make_shell: Callable[..., Bench], workspace: Path
) -> None:
    for _ in range(2):
        answer = await make_shell().answer("terminal", {"command": "echo run >> count; wc -l < count"}, call="call_x")

        assert words(answer) == "1\n[exit 0]"


async def test_a_background_command_is_followed_fed_and_ended(shell: Bench) -> None:
    command = "echo hello; while read line; do echo got $line; done"
    name = id_in(await shell("terminal", command=command, background=True))

    async with asyncio.timeout(10):
        while (seen := await shell("process", action="poll", id=name)) != "hello\n[running]":
            assert seen == "[running]"
    await shell("process", action="write", id=name, data="a\nb\n")
    async with asyncio.timeout(10):
        while "got b" not in await shell("process", action="log", id=name):
            await asyncio.sleep(0.01)

    assert await shell("process", action="poll", id=name) == "got a\ngot b\n[running]"
    assert await shell("process", action="poll", id=name) == "[running]"
    assert await shell("process", action="list") == f"{name} [running] {command}"
    assert await shell("process", action="kill", id=name) in ("[exit 143]", "[exit 137]")
    assert await shell("process", action="log", id=name) in (
        "hello\ngot a\ngot b\n[exit 143]",
        "hello\ngot a\ngot b\n[exit 137]",
    )


async def test_waiting_for_a_background_command_gives_its_end_or_says_that_it_runs(shell: Bench) -> None:
    quick = id_in(await shell("terminal", command="sleep 0.2; echo done; exit 2", background=True))
    slow = id_in(await shell("terminal", command="sleep 60", background=True))

    assert await shell("process", action="wait", id=quick) == "done\n[exit 2]"
    assert await shell("process", action="wait", id=slow, timeout=1) == "[running]"


async def test_background_commands_are_found_again_by_the_next_process(
    shell: Bench, make_shell: Callable[..., Bench]
) -> None:
    name = id_in(await shell("terminal", command="sleep 60", background=True))

    later = make_shell()

    assert await later("process", action="list") == f"{name} [running] sleep 60"
    assert await make_shell("s2")("process", action="list") == "No background commands here."
    assert await later("process", action="kill", id=name) in ("[exit 143]", "[exit 137]")


async def test_processes_left_behind_are_told_and_can_be_ended(shell: Bench) -> None:
    answer = await shell("terminal", command="sleep 60 & echo started")

    found = re.fullmatch(r"started\n\[exit 0; processes it started still run, see process\(kill, (\w{6})\)\]", answer)
    assert found is not None, answer
    assert await shell("process", action="kill", id=found[1]) == "[exit 0]"


async def test_an_unknown_id_is_answered_with_the_known_ones(shell: Bench) -> None:
    name = id_in(await shell("terminal", command="sleep 60", background=True))

    with pytest.raises(ToolError) as caught:
        await shell("process", action="poll", id="nobody")

    assert name in caught.value.hint


async def test_an_unknown_action_is_answered_with_its_path(shell: Bench) -> None:
    with pytest.raises(BadArguments, match=r"\$\.action"):
        await shell("process", action="dance")


async def test_any_call_id_will_do(shell: Bench) -> None:
    for call in ("../../x", "a b", "x" * 300, "ü", "", "."):
        answer = await shell.answer("terminal", {"command": "echo fine"}, call=call)

        assert words(answer) == "fine\n[exit 0]"


async def test_a_terminal_is_steered_by_what_is_written(shell: Bench) -> None:
    name = id_in(await shell("terminal", command="tty | cut -c1-5; sh", background=True, pty=True))
    await shell("process", action="write", id=name, data="echo $((40 + 2)); exit 3\n")

    answer = await shell("process", action="wait", id=name)

    assert "/dev/" in answer
    assert "42" in answer
    assert answer.endswith("[exit 3]")


async def test_a_terminal_in_the_foreground_has_an_input_that_is_at_its_end(shell: Bench) -> None:
    answer = await shell("terminal", command="test -t 1 && echo yes; cat; echo over", pty=True)

    assert "yes" in answer
    assert answer.endswith("over\n[exit 0]")


async def test_waiting_returns_when_a_line_matches(shell: Bench) -> None:
    command = "echo starting; sleep 0.5; echo listening on 80; sleep 0.5; echo listening on 81; sleep 60"
    name = id_in(await shell("terminal", command=command, background=True, watch=[r"listening on \d+"]))
    context = shell.context()

    first = words(await shell.tools["process"].run({"action": "wait", "id": name}, context))
    second = await shell("process", action="wait", id=name)
    assert first == "starting\nlistening on 80\n[running]\n[matched: listening on 80]"
    assert second == "listening on 81\n[running]\n[matched: listening on 81]"
    assert context.lines == ["listening on 80"]


async def test_waiting_ends_with_the_command_or_its_time_where_nothing_matches(shell: Bench) -> None:
    name = id_in(await shell("terminal", command="echo one; sleep 0.5", background=True, watch=["two"]))
    assert await shell("process", action="wait", id=name) == "one\n[exit 0]"

    name = id_in(await shell("terminal", command="echo one; sleep 60", background=True, watch=["two"]))
    assert await shell("process", action="wait", id=name, timeout=1) == "one\n[running]"


async def test_a_pattern_that_is_none_starts_nothing(shell: Bench) -> None:
    with pytest.raises(BadArguments, match="not a regular expression"):
        await shell("terminal", command="touch a", background=True, watch=["("])


async def test_whose_input_a_call_writes_to(make_shell: Callable[..., Bench], tmp_path: Path, workspace: Path) -> None:
    real = ShellTools(place=LocalPlace(folder=tmp_path / "exec", env=scrubbed(os.environ)), settings=TerminalSettings())
    shell = Bench(collect([real])[0], workspace)
    name = id_in(await shell("terminal", command="cat", background=True))

    fed = await real.fed("s1", {"action": "write", "id": name, "data": "x"})
    assert getattr(fed, "text", "") == "cat"
    assert await real.fed("s1", {"action": "write", "id": "none", "data": "x"}) is None
    assert await real.fed("s1", {"action": "poll", "id": name}) is None
    await shell("process", action="kill", id=name)
