"""What the enforcer reads, whom it ends, and whom it leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from hermes_agent.host.process_table import Identity, is_alive
from tests.architecture.source import ROOT
from tests.measured import path_of

PROGRAM = ("-m", "hermes_agent.sandbox.enforcer")
"""Not isolated, as it runs otherwise: so its lines are counted."""


def enforce(
    *lines: tuple[float, Path], given: str = "", program: tuple[str, ...] = PROGRAM, until: Callable[[], object] = int
) -> float:
    """How many seconds it took; its input stays open until that has returned."""
    text = given + "".join(f"{monotonic() + seconds} {os.fsencode(record).hex()}\n" for seconds, record in lines)
    environment = {**os.environ, "PYTHONPATH": path_of(ROOT / "src")}
    began = monotonic()
    with subprocess.Popen([sys.executable, *program], stdin=subprocess.PIPE, env=environment) as enforcer:
        assert enforcer.stdin is not None
        enforcer.stdin.write(text.encode())
        enforcer.stdin.flush()
        until()
        enforcer.communicate(timeout=20)
    assert enforcer.returncode == 0
    return monotonic() - began


DONE = "echo $C >$HERMES_EXEC/exit; exit $C"


def record(folder: Path, name: str, text: str) -> tuple[Path, subprocess.Popen[bytes]]:
    """A command with a record of its own; it says when it runs."""
    made = folder / name
    made.mkdir()
    child = subprocess.Popen(
        ["bash", "-c", f"echo runs; exec >/dev/null; {text}"],
        env={"HERMES_EXEC": str(made), "PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    child.stdout.close()
    return made, child


def test_each_ends_in_its_own_time_and_says_so(tmp_path: Path):
    first, one = record(tmp_path, "first", f"env -i sleep 60 & echo $! >{tmp_path}/bare; wait")
    second, two = record(tmp_path, "se\ncond", "sleep 60")

    assert 1.4 < enforce((0.2, first), (1.5, second)) < 10

    assert (one.wait(5), two.wait(5)) == (-15, -15)
    assert [(each / "exit").read_text() for each in (first, second)] == ["137\n", "137\n"]
    assert not is_alive(Identity(pid=int((tmp_path / "bare").read_text())))


def test_what_a_command_that_has_ended_left_behind_is_left_alone(tmp_path: Path):
    made, child = record(tmp_path, "a", "sleep 60")
    (made / "exit").write_text("0\n")

    assert enforce((0.2, made), (0.2, tmp_path / "no such record")) < 10

    assert child.poll() is None
    assert (made / "exit").read_text() == "0\n"
    child.kill()
    child.wait()


def test_whoever_shares_a_session_with_a_command_that_does_not_lead_it_is_left_alone(tmp_path: Path):
    made = tmp_path / "a"
    made.mkdir()
    text = f"sleep 60 & other=$!; HERMES_EXEC={made} sleep 61; kill -0 $other && echo alive; kill $other"
    child = subprocess.Popen(["bash", "-c", text], stdout=subprocess.PIPE, start_new_session=True)

    enforce((0.5, made))

    assert child.communicate(timeout=5)[0] == b"alive\n"


def test_with_nothing_to_wait_for_it_goes_at_once(tmp_path: Path):
    made, child = record(tmp_path, "a", "exit")
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # Nobody asks how it ended.

    assert enforce((600.0, made)) < 10
    assert enforce() < 10
    child.wait()


def test_a_time_that_is_over_while_more_may_come_is_heeded(tmp_path: Path):
    made, child = record(tmp_path, "a", "sleep 60")

    enforce((1.2, made), until=lambda: child.wait(15))

    assert child.returncode == -15


def test_its_own_code_is_what_a_shell_says_that_still_can(tmp_path: Path):
    made, child = record(tmp_path, "a", f"trap 'echo 9 >{tmp_path}/a/exit; exit 9' TERM; while :; do sleep 0.05; done")

    enforce((0.2, made))

    assert child.wait(5) == 9
    assert (made / "exit").read_text() == "9\n"


@pytest.mark.parametrize(
    ("text", "most", "said"),
    [
        ("for i in 1 2 3 4 5 6; do sleep 60 & done; wait", "4 0 0", b"it had 7 processes, and may have 4"),
        ("python3 -c 'import time; x = bytearray(90 << 20); time.sleep(60)'", "0 64 0", b"megabytes of memory"),
    ],
    ids=["processes", "memory"],
)
def test_a_command_that_has_more_than_it_may_is_ended_and_says_so(tmp_path: Path, text: str, most: str, said: bytes):
    made, child = record(tmp_path, "a", text)
    (made / "out").touch()

    enforce(given=f"inf {os.fsencode(made).hex()} {most}\n", until=lambda: child.wait(15))

    assert child.returncode == -9
    assert said in (made / "out").read_bytes()


def test_a_command_within_its_bounds_is_left_alone_and_the_watchdog_goes_after_it(tmp_path: Path):
    made, child = record(tmp_path, "a", "sleep 0.6; echo 0 >$HERMES_EXEC/exit")

    enforce(given=f"inf {os.fsencode(made).hex()} 20 500 100\n")

    assert child.wait(5) == 0


FILL = "mkdir -p $F/tmp; for n in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of=$F/tmp/$n bs=1M count=1; sleep 0.2; done"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (f"{FILL}; sleep 60", -9, b"/tmp and ~ of its session hold "),
        ("mkdir -p $F/tmp; truncate -s 1G $F/tmp/sparse; ln -s / $F/tmp/all; sleep 0.6; exit 3", 3, b""),
    ],
    ids=["filled", "only looks large"],
)
def test_a_command_that_fills_the_folders_of_its_session_is_ended(tmp_path: Path, text: str, code: int, said: bytes):
    (tmp_path / "g").mkdir()
    made, child = record(tmp_path / "g", "a", f"F={tmp_path}/.sessions/g; exec 2>/dev/null; ({text}); C=$?; {DONE}")
    (made / "out").touch()

    enforce(given=f"inf {os.fsencode(made).hex()} 0 0 4\n", until=lambda: child.wait(15))

    assert child.returncode == code
    assert said in (made / "out").read_bytes()
    assert (b"may hold 4" in (made / "out").read_bytes()) is bool(said)


def test_in_a_session_that_is_full_a_command_that_deletes_goes_on(tmp_path: Path):
    folder = tmp_path / ".sessions/g/tmp"
    for path in (folder, tmp_path / "g"):
        path.mkdir(parents=True)
    for name in range(8):
        (folder / str(name)).write_bytes(b"x" * (1 << 20))
    made, child = record(tmp_path / "g", "a", f"for n in {folder}/*; do rm $n; sleep 0.1; done; C=0; {DONE}")

    enforce(given=f"inf {os.fsencode(made).hex()} 0 0 4\n")

    assert child.wait(5) == 0
    assert list(folder.iterdir()) == []


def test_without_a_table_of_processes_the_group_ends(tmp_path: Path):
    made, child = record(tmp_path, "a", "sleep 60 & sleep 61")
    (made / "pid").write_text(f"{child.pid}\n")
    (tmp_path / "b").mkdir()
    without = 'from hermes_agent.sandbox import enforcer; enforcer.PROC = "/none"; enforcer.serve()'

    enforce((0.0, made), (0.0, tmp_path / "b"), program=("-c", without))

    assert child.wait(5) == -15
    assert (made / "exit").read_text() == "137\n"
