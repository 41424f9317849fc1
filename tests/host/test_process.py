"""Processes are started, watched and ended, with all that they started."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.host import process
from hermes_agent.host.process import Child, Ended, apart, open_piped, run, start_detached
from hermes_agent.host.process_table import Identity, family, row_of
from tests.cancelling import Work, awaits, cancelled
from tests.holds import longest_hold

ENV = {"PATH": os.environ["PATH"], "MARK": "1"}
STUBBORN = "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM; sleep 60; sleep 61' & echo ready; sleep 60; sleep 62"


@pytest.fixture
def out(tmp_path: Path) -> Iterator[int]:
    handle = os.open(tmp_path / "out", os.O_CREAT | os.O_RDWR | os.O_APPEND)
    yield handle
    os.close(handle)


def started(text: str, out: int, mark: str = "x") -> Child:
    return start_detached(["sh", "-c", text], cwd="/", env={**ENV, "MARK": mark}, stdin=None, out=out)


async def until(path: Path, text: bytes) -> None:
    async with asyncio.timeout(10):
        while text not in await asyncio.to_thread(path.read_bytes):
            await asyncio.sleep(0.01)


async def until_gone(pid: Path) -> None:
    leader = int(await asyncio.to_thread(pid.read_text))
    async with asyncio.timeout(2):
        while family(leader, b"-"):
            await asyncio.sleep(0.01)


async def test_output_exit_code_and_errors_are_given() -> None:
    ended = await process.run(["sh", "-c", "echo out; echo err >&2; exit 3"], env=ENV)

    assert (ended.code, ended.out, ended.err, ended.cut) == (3, b"out\n", b"err\n", False)


async def test_a_signal_counts_as_in_a_shell() -> None:
    assert (await process.run(["sh", "-c", "kill -9 $$"], env=ENV)).code == 137


async def test_output_past_the_limit_ends_it() -> None:
    ended = await process.run(["sh", "-c", "yes"], env=ENV, most=100_000)

    assert ended.cut
    assert len(ended.out) == 100_000


async def test_a_flood_of_errors_does_not_block_it() -> None:
    ended = await process.run([sys.executable, "-c", "import os; os.write(2, b'x' * 10**6)"], env=ENV, most=1 << 20)

    assert (ended.code, len(ended.err)) == (0, 10**6)


async def test_time_runs_out_for_the_whole_group(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        await process.run(["sh", "-c", "sleep 60 & echo $! > pid; sleep 60"], env=ENV, cwd=str(tmp_path), seconds=0.3)

    await until_gone(tmp_path / "pid")


async def test_cancelling_ends_it(tmp_path: Path) -> None:
    running = asyncio.ensure_future(process.run(["sh", "-c", "echo $$ > pid; sleep 60"], env=ENV, cwd=str(tmp_path)))
    (tmp_path / "pid").touch()
    await until(tmp_path / "pid", b"\n")

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    await until_gone(tmp_path / "pid")


async def test_a_program_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        await process.run(["/no/such/program"], env=ENV)


async def test_the_end_of_a_child_is_seen_with_its_code(out: int) -> None:
    child = started("sleep 0.1; exit 7", out)
    assert child.is_alive
    assert child.code is None

    await child.exited()

    assert (child.is_alive, child.code) == (False, 7)


async def test_the_end_of_a_stranger_is_seen_too(out: int) -> None:
    child = started("sleep 0.2", out)
    row = row_of(child.identity.pid)
    stranger = Child(Identity(pid=row.pid, started=row.started))

    async with asyncio.timeout(5):
        await stranger.exited()

    assert stranger.code is None
    assert not stranger.is_ours


async def test_several_may_wait_for_one_end(out: int) -> None:
    child = started("sleep 0.1", out)

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(child.exited())

    assert child.code == 0


async def test_a_quick_end_is_waited_for_in_a_thread(out: int) -> None:
    assert await asyncio.to_thread(started("true", out).ends_within, 5)
    slow = started("sleep 60", out)
    assert not await asyncio.to_thread(slow.ends_within, 0.01)
    assert await slow.end("MARK=x")


async def test_who_ignores_signals_and_forked_away_is_gone_within_two_seconds(out: int, tmp_path: Path) -> None:
    child = started(STUBBORN, out, mark="stubborn")
    await until(tmp_path / "out", b"ready")
    clock = asyncio.get_running_loop()
    began = clock.time()

    gone = await child.end("MARK=stubborn")

    assert gone
    assert clock.time() - began < 2
    assert family(child.identity.pid, b"MARK=stubborn") == []


async def test_who_listens_is_given_the_time_to_tidy_up(out: int, tmp_path: Path) -> None:
    child = started("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.02; done", out)
    await until(tmp_path / "out", b"ready")

    assert await child.end("MARK=x")

    assert (tmp_path / "out").read_bytes().endswith(b"bye\n")


async def test_of_one_that_has_ended_only_the_marked_are_ended(out: int) -> None:
    ended = started("exit 0", out, mark="old")
    await ended.exited()
    other = started("sleep 60", out, mark="other")

    assert await ended.end("MARK=old")

    assert other.is_alive
    assert await other.end("MARK=other")


async def test_a_group_that_lives_on_is_noticed(out: int) -> None:
    child = started("sleep 60 & exit 0", out, mark="left")
    await child.exited()

    assert child.has_group
    assert await child.end("MARK=left")
    assert family(0, b"MARK=left") == []


def test_a_program_becomes_another_one_under_its_number():
    code = (
        "import os, sys; from hermes_agent.host.process import become; print(os.getpid(), flush=True); "
        "become([sys.executable, '-c', 'import os; print(os.getpid(), os.environ[\"A\"])'], env={'A': 'b'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**ENV, "PYTHONPATH": ":".join(sys.path)}, capture_output=True, check=True
    )

    first, second, said = done.stdout.decode().split()
    assert first == second
    assert said == "b"


LARGE = bytes(range(256)) * 100_000


def test_what_it_gives_comes_back_whole():
    assert asyncio.run(apart("base64:b64encode", b"ab\xff")) == b"YWL/"
    assert asyncio.run(apart("builtins:bytes", LARGE)) == LARGE


@pytest.mark.parametrize(
    ("function", "data"),
    [
        ("builtins:eval", b"9**9**9"),
        ("builtins:eval", b"bytes(2<<30)"),
        ("builtins:eval", b"len(1)"),
        ("no:where", b""),
    ],
    ids=["time", "memory", "failure", "no function"],
)
async def test_what_takes_too_much_or_fails_ends_alone(function: str, data: bytes):
    held = asyncio.create_task(longest_hold())

    with pytest.raises(Ended, match="1 s of work or 1 GB, or failed"):
        await apart(function, data, work=1)

    held.cancel()
    assert await held < 0.5


async def test_what_waits_too_long_is_ended():
    with pytest.raises(Ended, match=r"took more than 0\.1 s"):
        await apart("builtins:eval", b"__import__('time').sleep(60)", patience=0.1)


async def test_where_no_process_can_be_started_that_is_told():
    with pytest.raises(OSError, match="long"):
        await apart("builtins:bytes", b"", "x" * 4_000_000)


FORKS = ["sh", "-c", "sleep 2.5 & sleep 0.2"]
SLEEPS = b"__import__('time').sleep(0.2) or b'done'"


async def piped() -> None:
    running = await open_piped(["sh", "-c", "cat >/dev/null; echo done; sleep 0.2"], env=ENV, data=b"x" * 500_000)
    try:
        await running.collect(100)
    finally:
        await running.close()


WORKS: dict[str, Work] = {
    "a program that ends": lambda: run(["true"], env=ENV),
    "a program that forks": lambda: run(FORKS, env=ENV),
    "a program with input": piped,
    "a function apart": lambda: apart("builtins:eval", SLEEPS),
}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("everything", [False, True], ids=["it", "everything"])
@pytest.mark.parametrize("name", sorted(WORKS))
async def test_it_leaves_nothing_at_whichever_await_it_is_cancelled(name: str, everything: bool):
    work = WORKS[name]
    made = await awaits(work)
    points = range(1, made + 1)
    assert made > 3

    for at in sorted(random.sample(points, min(made, 12))):
        assert await cancelled(work, at, everything=everything) == [], at
