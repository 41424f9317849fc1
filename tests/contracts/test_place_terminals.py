"""Every place gives a command a real terminal."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hermes_agent.sandbox.place import Command, Place, PlaceFailed
from tests.contracts.test_place import run, until_written


async def test_a_terminal_is_one_with_a_size_and_an_exit_code(place: Place, plain: Command) -> None:
    text = "test -t 0 && test -t 1 && test -t 2 && stty size; echo $TERM $(tty | cut -c1-5); exit 7"

    code, output = await run(place, "g/a", replace(plain, text=text, pty=True))

    assert output.replace("\r\n", "\n") == "24 80\nxterm /dev/\n"
    assert code == 7


async def test_what_is_written_to_a_terminal_is_typed_there_and_ctrl_c_interrupts(place: Place, plain: Command) -> None:
    text = "read word; echo got $word; trap 'echo stopped; exit 5' INT; echo ready; while :; do sleep 0.1; done"
    running = await place.start("g/a", replace(plain, text=text, pty=True, background=True))

    await running.write(b"hello\n")
    await until_written(running, b"ready")
    await running.write(b"\x03")

    async with asyncio.timeout(10):
        ended = await running.wait()
    output = await running.read(0, 1 << 20)
    assert ended.code == 5
    assert b"got hello" in output
    assert b"stopped" in output


async def test_a_stop_ends_what_runs_on_a_terminal(place: Place, plain: Command) -> None:
    text = "trap '' HUP TERM INT; echo ready; while :; do sleep 0.2; done"
    running = await place.start("g/a", replace(plain, text=text, pty=True, background=True))
    await until_written(running, b"ready")
    loop = asyncio.get_running_loop()
    began = loop.time()

    assert await running.kill()

    assert loop.time() - began < 3
    assert (await running.wait()).code is not None


async def test_a_text_too_long_to_type_is_refused(place: Place, plain: Command) -> None:
    with pytest.raises(PlaceFailed, match="put it into a file"):
        await place.start("g/a", replace(plain, text="#" * 20_000, pty=True))
