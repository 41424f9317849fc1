"""What this machine promises beyond the contract: commands survive `kill -9` of the program that started them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import hermes_agent
from hermes_agent.host.process_table import family
from hermes_agent.sandbox.backends import local
from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.executions import read_text
from hermes_agent.sandbox.place import Command

SOURCE = str(Path(hermes_agent.__file__).parents[1])
ENV = {"PATH": os.environ["PATH"]}
# A program that starts a command and is killed while it waits for it.
PROGRAM = """
import asyncio, sys
from pathlib import Path
from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.place import Command

async def main():
    place = LocalPlace(folder=Path(sys.argv[1]), env={"PATH": sys.argv[4]})
    running = await place.start("g/a", Command(text=sys.argv[2], folder=sys.argv[3], shell="g"))
    print("started", flush=True)
    await running.wait()

asyncio.run(main())
"""


@pytest.fixture
def place(tmp_path: Path) -> LocalPlace:
    return LocalPlace(folder=tmp_path / "exec", env=ENV)


@pytest.fixture
def plain(tmp_path: Path) -> Command:
    return Command(text="true", folder=str(tmp_path))


def start_and_be_killed(tmp_path: Path, text: str) -> None:
    arguments = [str(tmp_path / "exec"), text, str(tmp_path), ENV["PATH"]]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**ENV, "PYTHONPATH": SOURCE}) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"started\n"
        program.send_signal(signal.SIGKILL)


async def test_after_kill_9_the_whole_output_and_the_exit_code_are_there_and_it_ran_once(
    place: LocalPlace, tmp_path: Path
) -> None:
    text = "echo once >> count; echo one; cd /usr; export A=7; sleep 0.5; echo two; exit 9"
    await asyncio.to_thread(start_and_be_killed, tmp_path, text)

    running = await place.attach("g/a")

    assert running is not None
    assert await running.poll() is None
    assert (await running.wait()).code == 9
    assert await running.read(0, 100) == b"one\ntwo\n"
    assert (tmp_path / "count").read_text() == "once\n"
    assert await place.directory("g") == "/usr"


async def test_a_kept_shell_is_written_anew_where_a_command_changed_it(place: LocalPlace, plain: Command) -> None:
    seen = []
    for name, text in enumerate(("export A=1", "true", "true", "export A=2")):
        await (await place.start(f"g/{name}", replace(plain, text=text, shell="g"))).wait()
        seen.append((place.exported("g")["A"], (Path(plain.folder) / "exec/g/.kept").stat().st_ino))

    assert [value for value, _ in seen] == ["1", "1", "1", "2"]
    assert seen[1] == seen[2] != seen[3]  # The first one knows of no folder before its own.


async def test_a_command_of_the_same_id_in_another_home_is_left_alone(place: LocalPlace, tmp_path: Path) -> None:
    other = LocalPlace(folder=tmp_path / "other", env=ENV)
    text = "echo ready; sleep 60"
    mine, theirs = [await each.start("g/a", Command(text=text, folder=str(tmp_path))) for each in (place, other)]

    assert await mine.kill()

    assert await theirs.poll() is None
    assert await theirs.kill()


async def test_a_command_that_somebody_else_ended_is_not_said_to_have_succeeded(
    place: LocalPlace, tmp_path: Path
) -> None:
    await asyncio.to_thread(start_and_be_killed, tmp_path, "true; echo $$ >> number; sleep 60")
    running = await place.attach("g/a")
    assert running is not None
    async with asyncio.timeout(10):
        while not (shell := await asyncio.to_thread(read_text, tmp_path / "number")):
            await asyncio.sleep(0.01)

    os.killpg(int(shell), signal.SIGTERM)

    assert (await running.wait()).code == 143


MANY = """
import asyncio, sys
from pathlib import Path
from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.place import Command

async def main():
    place = LocalPlace(folder=Path(sys.argv[1]), env={"PATH": sys.argv[3]})
    for number in range(50):
        text = f"exit {number}" if number % 5 == 0 else f"sleep 6{number:02}"
        await place.start(f"g/{number}", Command(text=text, folder=sys.argv[2], background=True))
    print("started", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def start_many_and_be_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MANY, str(tmp_path / "exec"), str(tmp_path), ENV["PATH"]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**ENV, "PYTHONPATH": SOURCE}) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"started\n"
        program.send_signal(signal.SIGKILL)


async def test_after_kill_9_fifty_background_commands_are_found_running_or_ended_and_none_is_left_unowned(
    place: LocalPlace, tmp_path: Path
) -> None:
    await asyncio.to_thread(start_many_and_be_killed, tmp_path)

    found = [await place.attach(exec_id) for exec_id in await place.list("g")]

    ended = {running.exec_id: await running.poll() for running in found if running is not None}
    assert set(ended) == {f"g/{number}" for number in range(50)}
    assert {name: end.code for name, end in ended.items() if end is not None} == {f"g/{n}": n for n in range(0, 50, 5)}
    async with asyncio.TaskGroup() as group:
        kills = [group.create_task(running.kill()) for running in found if running is not None]
    assert all(kill.result() for kill in kills)
    assert [name for name in ended if family(0, f"HERMES_EXEC={tmp_path}/exec/{name}".encode())] == []


async def test_after_kill_9_a_stubborn_command_can_still_be_ended(place: LocalPlace, tmp_path: Path) -> None:
    text = "trap '' TERM; (trap '' TERM; setsid sleep 60 &); sleep 60"
    await asyncio.to_thread(start_and_be_killed, tmp_path, text)
    running = await place.attach("g/a")
    assert running is not None

    assert await running.kill()

    assert (await running.wait()).code == 137


async def test_a_command_that_was_killed_while_nobody_looked_ended_unseen(place: LocalPlace, plain: Command) -> None:
    running = await place.start("g/a", replace(plain, text="kill -9 $$"))
    await running.wait()

    again = await LocalPlace(folder=place._folder, env=ENV).attach("g/a")

    assert again is not None
    assert (await again.wait()).code is None


async def test_a_claim_whose_command_never_began_is_void_and_may_be_started(tmp_path: Path, plain: Command) -> None:
    place = LocalPlace(folder=tmp_path / "exec", env=ENV, begin_seconds=0.1)
    (place._folder / "g").mkdir(parents=True)
    (place._folder / "g" / "a").mkdir()

    assert await place.attach("g/a") is None

    running = await place.start("g/a", replace(plain, text="exit 2"))
    assert (await running.wait()).code == 2


async def test_numbers_of_an_earlier_boot_are_nobodys(place: LocalPlace, plain: Command) -> None:
    running = await place.start("g/a", replace(plain, text="sleep 60", background=True))
    later = LocalPlace(folder=place._folder, env=ENV)
    later._boot = "another"

    seen = await later.attach("g/a")

    assert seen is not None
    assert await seen.poll() is not None
    assert await running.poll() is None
    assert await running.kill()


async def test_a_process_that_got_the_number_of_a_dead_one_is_left_alone(place: LocalPlace, plain: Command) -> None:
    innocent = await place.start("g/innocent", replace(plain, text="exec sleep 60", background=True))
    old = await place.start("g/old", replace(plain, text="kill -9 $$"))
    await old.wait()
    pid = (place._folder / "g" / "innocent" / "pid").read_text().split()
    pid[21] = str(int(pid[21]) - 1)
    (place._folder / "g" / "old" / "pid").write_text(" ".join(pid))

    again = await place.attach("g/old")

    assert again is not None
    assert await again.poll() is not None
    assert await again.kill()
    assert await innocent.poll() is None
    assert await innocent.kill()


async def test_a_full_input_is_an_answer_and_not_a_wait(place: LocalPlace, plain: Command) -> None:
    running = await place.start("g/a", replace(plain, text="sleep 60", background=True))

    with pytest.raises(local.PlaceFailed, match=r"stopped reading|does not read"):
        await running.write(b"x" * 1_000_000)

    assert await running.kill()


async def test_old_commands_are_forgotten_and_running_ones_are_not(place: LocalPlace, plain: Command) -> None:
    await (await place.start("g/old", plain)).wait()
    running = await place.start("g/new", replace(plain, text="sleep 60", background=True))
    assert await place.prune(1, 1) == 0
    an_hour_ago = (place._folder / "g" / "old" / "exit").stat().st_mtime - 3600
    os.utime(place._folder / "g" / "old" / "exit", (an_hour_ago, an_hour_ago))

    assert await place.prune(61, 1) == 0
    assert await place.prune(59, 1) == 1

    assert await place.attach("g/old") is None
    assert await place.list("g") == ("g/new",)
    assert await running.kill()


async def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path, plain: Command) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(local.PlaceFailed, match="could not be started"):
        await LocalPlace(folder=tmp_path / "file" / "exec", env=ENV).start("g/a", plain)


async def test_a_shell_that_is_not_there_is_a_sentence_and_claims_nothing(tmp_path: Path, plain: Command) -> None:
    place = LocalPlace(folder=tmp_path / "exec", env=ENV, shell="/no/such/shell")

    with pytest.raises(local.PlaceFailed, match="could not be started"):
        await place.start("g/a", plain)

    assert await place.attach("g/a") is None
