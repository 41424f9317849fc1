"""Every place keeps the promises of `Place` and `Running`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.sandbox.place import PLACES, AlreadyStarted, Command, Ended, Place, PlaceFailed, Running
from tests.contracts.places import MAKERS


def test_every_place_is_held_to_the_contract() -> None:
    assert set(PLACES) <= set(MAKERS)


async def run(place: Place, exec_id: str, command: Command) -> tuple[int | None, str]:
    running = await place.start(exec_id, command)
    ended = await running.wait()
    return ended.code, (await running.read(0, 1 << 20)).decode()


def count_of(command: Command) -> str:
    return Path(command.folder, "count").read_text()


async def until_written(running: Running, text: bytes) -> None:
    async with asyncio.timeout(10):
        while text not in await running.read(0, 1 << 20):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("text", "code", "output"),
    [
        ("true", 0, ""),
        ("echo out; echo err >&2; exit 3", 3, "out\nerr\n"),
        ("false && echo no || echo yes", 0, "yes\n"),
        ("printf 'käse\\n'", 0, "käse\n"),
        ("cat <<'E'\nit's $HOME\nE", 0, "it's $HOME\n"),
        ("exec sh -c 'exit 5'", 5, ""),
        ("trap 'echo bye' EXIT; exit 4", 4, "bye\n"),
        ("set -e; false; echo no", 1, ""),
        ("set -eu; echo $nothing_here", 1, None),
        ("kill -9 $$", 137, ""),
        ("no_such_program", 127, None),
        ("if then", 2, None),
        ("cat; echo end", 0, "end\n"),
        ("echo '# not a comment'; : # a comment", 0, "# not a comment\n"),
        ("for i in 1 2 3\ndo echo $i\ndone", 0, "1\n2\n3\n"),
        ("echo a\\\nb", 0, "ab\n"),
        ("[[ a == a ]] && a=(1 2) && echo ${a[1]}", 0, "2\n"),
        ("set -C; set -f; set -x; cd /; true", 0, None),
    ],
)
async def test_a_command_gives_its_exit_code_and_output(
    place: Place, plain: Command, text: str, code: int, output: str | None
) -> None:
    found = await run(place, "g/a", replace(plain, text=text, shell="g"))

    assert found[0] == code
    assert output is None or found[1] == output


@pytest.mark.parametrize("exec_id", ["", "a", "../a", "g/../a", "g/.kept", "g/a/b", "g/a b", "g/" + "x" * 121, "g/\n"])
async def test_an_id_that_is_none_is_refused(place: Place, plain: Command, exec_id: str) -> None:
    with pytest.raises(PlaceFailed):
        await place.start(exec_id, plain)


async def test_an_id_is_started_once(place: Place, make: Callable[[], Place], plain: Command) -> None:
    command = replace(plain, text="echo once >> count")
    await (await place.start("g/a", command)).wait()

    for again in (place, make()):
        with pytest.raises(AlreadyStarted):
            await again.start("g/a", command)

    assert count_of(plain) == "once\n"


async def test_of_many_starts_of_one_id_one_happens(make: Callable[[], Place], plain: Command) -> None:
    async def start() -> int:
        try:
            await (await make().start("g/a", replace(plain, text="echo once >> count"))).wait()
        except AlreadyStarted:
            return 0
        return 1

    async with asyncio.TaskGroup() as group:
        starts = [group.create_task(start()) for _ in range(8)]

    assert sum(task.result() for task in starts) == 1
    assert count_of(plain) == "once\n"


async def test_what_was_never_started_cannot_be_attached(place: Place) -> None:
    assert await place.attach("g/a") is None


async def test_another_process_attaches_to_a_running_command(
    place: Place, make: Callable[[], Place], plain: Command
) -> None:
    text = "echo one; until [ -e go ]; do sleep 0.02; done; echo two; exit 6"
    first = await place.start("g/a", replace(plain, text=text))
    await until_written(first, b"one")

    second = await make().attach("g/a")

    assert second is not None
    assert await second.poll() is None
    await run(place, "g/go", replace(plain, text="touch go"))
    assert (await second.wait()).code == 6
    assert await second.read(0, 100) == b"one\ntwo\n"
    assert second.command.text.startswith("echo one")


async def test_another_process_attaches_to_an_ended_one(
    place: Place, make: Callable[[], Place], plain: Command
) -> None:
    await run(place, "g/a", replace(plain, text="echo done; exit 9"))

    again = await make().attach("g/a")

    assert again is not None
    assert (await again.wait()).code == 9
    assert await again.read(0, 100) == b"done\n"


async def test_output_is_read_in_parts_while_it_runs(place: Place, plain: Command) -> None:
    running = await place.start("g/a", replace(plain, text="echo abc; sleep 60"))
    await until_written(running, b"abc")

    assert await running.read(1, 2) == b"bc"
    assert await running.read(4, 10) == b""
    assert await running.size() == 4
    assert await running.kill()


async def test_ten_megabytes_and_any_bytes_come_out_whole(place: Place, plain: Command) -> None:
    text = "head -c 10000000 /dev/zero | tr '\\0' '\\377'; printf '\\0\\1\\2'"
    running = await place.start("g/a", replace(plain, text=text))
    await running.wait()

    assert await running.size() == 10_000_003
    assert await running.read(9_999_998, 10) == b"\xff\xff\0\1\2"
    assert await running.read(0, 10_000_003) == b"\xff" * 10_000_000 + b"\0\1\2"


async def test_a_kept_shell_keeps_directory_and_environment(place: Place, plain: Command) -> None:
    kept = replace(plain, shell="g")
    await run(place, "g/0", replace(kept, text="mkdir \"sub 'dir'\""))
    await run(place, "g/a", replace(kept, text="cd \"sub 'dir'\"; export NAME=\"a 'b'\nc\"; unset COLOUR; LOCAL=1"))

    found = await run(place, "g/b", replace(kept, text='pwd; echo "$NAME" ${COLOUR-none} ${LOCAL-none}'))

    assert found == (0, f"{plain.folder}/sub 'dir'\na 'b'\nc none none\n")
    assert await place.directory("g") == f"{plain.folder}/sub 'dir'"


async def test_another_process_finds_the_kept_shell(place: Place, make: Callable[[], Place], plain: Command) -> None:
    await run(place, "g/a", replace(plain, shell="g", text="cd /usr; export A=1"))

    assert await run(make(), "g/b", replace(plain, shell="g", text="pwd; echo $A")) == (0, "/usr\n1\n")


async def test_kept_shells_know_nothing_of_each_other(place: Place, plain: Command) -> None:
    await run(place, "g/a", replace(plain, shell="g", text="cd /usr; export A=1"))

    assert await run(place, "h/a", replace(plain, shell="h", text="pwd; echo ${A-none}")) == (
        0,
        f"{plain.folder}\nnone\n",
    )
    assert await place.directory("h") in ("", plain.folder)


async def test_a_command_that_keeps_nothing_sees_the_shell_and_leaves_it_alone(place: Place, plain: Command) -> None:
    kept = replace(plain, shell="g")
    await run(place, "g/a", replace(kept, text="cd /usr"))
    await run(place, "g/b", replace(kept, text="pwd; cd /; export A=1", keeps=False))

    assert await run(place, "g/c", replace(kept, text="pwd; echo ${A-none}")) == (0, "/usr\nnone\n")


async def test_a_working_directory_is_for_one_command(place: Place, plain: Command) -> None:
    kept = replace(plain, shell="g")
    await run(place, "g/a", replace(kept, text="cd /usr"))

    assert await run(place, "g/b", replace(kept, text="pwd; export A=1", workdir="bin/..")) == (0, "/usr\n")
    assert await run(place, "g/c", replace(kept, text="pwd", workdir="/")) == (0, "/\n")
    assert await run(place, "g/d", replace(kept, text="pwd; echo $A")) == (0, "/usr\n1\n")


async def test_a_working_directory_that_is_not_there_is_refused(place: Place, plain: Command) -> None:
    with pytest.raises(PlaceFailed, match="does not exist"):
        await place.start("g/a", replace(plain, workdir="nowhere"))

    assert await place.attach("g/a") is None


async def test_a_kept_directory_that_is_gone_gives_way_to_the_folder(place: Place, plain: Command) -> None:
    kept = replace(plain, shell="g")
    await run(place, "g/a", replace(kept, text="mkdir gone; cd gone; rmdir ../gone"))

    assert await run(place, "g/b", replace(kept, text="pwd")) == (0, f"{plain.folder}\n")


async def test_a_part_of_the_output_is_covered_while_the_command_writes_on(place: Place, plain: Command) -> None:
    text = "echo one two; echo ready; until [ -e go ]; do sleep 0.02; done; echo three; exit 4"
    running = await place.start("g/a", replace(plain, text=text))
    await until_written(running, b"ready")
    await running.cover(4, b"***")
    await run(place, "g/go", replace(plain, text="touch go"))

    assert (await running.wait()).code == 4
    assert await running.read(0, 100) == b"one ***\nready\nthree\n"
    await running.cover(0, b"ONE")
    assert await running.read(0, 100) == b"ONE ***\nready\nthree\n"
    assert await running.size() == len(b"ONE ***\nready\nthree\n")


async def test_a_large_part_is_covered_at_once(place: Place, plain: Command) -> None:
    running = await place.start("g/a", replace(plain, text="head -c 100000 /dev/zero"))
    await running.wait()
    await running.cover(8192, b"x" * 50_000)

    content = await running.read(0, 200_000)
    assert content == bytes(8192) + b"x" * 50_000 + bytes(100_000 - 58_192)


async def test_a_background_command_reads_what_is_written_to_it(place: Place, plain: Command) -> None:
    running = await place.start("g/a", replace(plain, text="read a; echo got $a; read b; exit $b", background=True))

    await running.write(b"hello\n")
    await until_written(running, b"got hello")
    await running.write(b"4\n")

    assert (await running.wait()).code == 4
    with pytest.raises(PlaceFailed):
        await running.write(b"more\n")


async def test_only_a_background_command_takes_input(place: Place, plain: Command) -> None:
    running = await place.start("g/a", replace(plain, text="sleep 60"))

    with pytest.raises(PlaceFailed):
        await running.write(b"x")
    assert await running.kill()


async def test_background_commands_are_listed_in_their_group_by_any_process(
    place: Place, make: Callable[[], Place], plain: Command
) -> None:
    first = await place.start("g/b", replace(plain, text="sleep 60", background=True))
    await run(place, "g/c", plain)
    second = await place.start("g/a", replace(plain, text="sleep 60", background=True))
    await run(place, "h/a", replace(plain, background=True))

    assert await make().list("g") == ("g/b", "g/a")
    assert await place.list("nobody") == ()
    assert await first.kill()
    assert await second.kill()


async def test_a_command_that_left_processes_behind_says_so_and_is_listed(place: Place, plain: Command) -> None:
    running = await place.start("g/a", replace(plain, text="sleep 60 & echo done"))

    ended = await running.wait()

    assert (ended.code, ended.children) == (0, True)
    assert await place.list("g") == ("g/a",)
    assert await running.kill()
    assert await running.poll() == Ended(code=0, seconds=ended.seconds, children=False)


STUBBORN = {
    "ignores signals": "trap '' TERM HUP INT; echo ready; sleep 60; sleep 61",
    "forked twice into sessions": "trap '' TERM; (setsid sh -c 'setsid sleep 60 & sleep 61' &); echo ready; sleep 60",
    "left nobody behind it": "(setsid setsid sleep 60 &); echo ready; sleep 60",
    "children without environment": "(trap '' TERM; env -i sleep 60) & echo ready; sleep 61",
    "stopped": "echo ready; kill -STOP $$; sleep 60",
    "a pipeline": "echo ready; yes > /dev/null | sleep 60 | sleep 61",
}


@pytest.mark.parametrize("text", STUBBORN.values(), ids=STUBBORN)
async def test_a_kill_leaves_nothing_within_two_seconds(
    place: Place, make: Callable[[], Place], plain: Command, text: str
) -> None:
    running = await place.start("g/a", replace(plain, text=text))
    await until_written(running, b"ready")
    loop = asyncio.get_running_loop()
    began = loop.time()

    assert await running.kill()

    assert loop.time() - began < 2
    assert (await running.wait()).code in (137, 143)
    again = await make().attach("g/a")
    assert again is not None
    assert (await again.wait()).code in (137, 143)


async def test_a_kill_reaches_children_that_hide_their_environment(place: Place, plain: Command) -> None:
    pipe = Path(plain.folder, "held")
    os.mkfifo(pipe)
    running = await place.start("g/a", replace(plain, text="env -i sleep 60 <>held & echo ready; sleep 61"))
    await until_written(running, b"ready")

    assert await running.kill()

    with pytest.raises(OSError, match="No such device or address"):  # nobody holds its other end
        os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)


async def test_a_process_that_only_attached_kills_as_well(
    place: Place, make: Callable[[], Place], plain: Command
) -> None:
    running = await place.start("g/a", replace(plain, text=f"{STUBBORN['ignores signals']}"))
    await until_written(running, b"ready")
    again = await make().attach("g/a")
    assert again is not None

    assert await again.kill()

    assert (await again.wait()).code == 137
    await running.wait()


async def test_killing_what_has_ended_is_no_error(place: Place, plain: Command) -> None:
    running = await place.start("g/a", replace(plain, text="exit 3"))
    await running.wait()

    assert await running.kill()
    assert (await running.wait()).code == 3


async def test_a_signal_reaches_the_group(place: Place, plain: Command) -> None:
    text = "trap 'echo caught; exit 8' USR1; echo ready; while :; do sleep 0.02; done"
    running = await place.start("g/a", replace(plain, text=text))
    await until_written(running, b"ready")

    await running.signal(10)

    assert (await running.wait()).code == 8
    assert (await running.read(0, 100)).endswith(b"caught\n")


async def test_giving_up_waiting_leaves_the_command_alone(place: Place, plain: Command) -> None:
    running = await place.start("g/a", replace(plain, text="sleep 0.5; exit 2"))

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await running.wait()

    assert (await running.wait()).code == 2
    assert (await running.wait()).seconds >= 0.4


async def test_the_output_of_an_ended_command_is_replaced_as_a_whole(
    place: Place, make: Callable[[], Place], plain: Command
) -> None:
    running = await place.start("g/a", replace(plain, text="head -c 100000 /dev/zero; exit 5"))
    await running.wait()

    await running.rewrite(b"\0\xff" * 1000)

    again = await make().attach("g/a")
    for each in (running, again):
        assert each is not None
        assert (await each.wait()).code == 5
        assert await each.read(0, 100_000) == b"\0\xff" * 1000
