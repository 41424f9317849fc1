"""What is shown of an output whose end may never come."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from hermes_agent.sandbox.place import Command
from hermes_agent.testing.clock import FakeClock
from hermes_agent.testing.place import FakeRunning, Play
from hermes_agent.tools.output import CHUNK, OVERLAP, REWRITTEN, Caps, Cover, Covers, Hiding, shown_output


@dataclass
class Output:
    """As much of `Running` as output needs."""

    content: bytes
    output_path: str = "/out"
    most: int = 0

    async def size(self) -> int:
        return len(self.content)

    async def read(self, start: int, limit: int) -> bytes:
        self.most = max(self.most, limit)
        return self.content[start : start + limit]


CAPS = Caps(max_bytes=200, max_lines=10)


@pytest.mark.parametrize("text", ["", "short\n", "x" * 200, "ä" * 100, "1\n" * 10])
async def test_what_fits_is_shown_whole(text: str) -> None:
    assert await shown_output(Output(text.encode()), CAPS) == text


@pytest.mark.parametrize("text", ["x" * 201, "1\n" * 11, "start\n" + "m\n" * 10_000 + "end\n", "ä" * 5_000])
async def test_what_does_not_is_cut_in_the_middle_within_the_caps(text: str) -> None:
    output = Output(text.encode())

    shown = await shown_output(output, CAPS)

    assert "the whole is in /out]" in shown
    assert shown[0] == text[0]
    assert shown.strip()[-1] == text.strip()[-1]
    assert len(shown.encode()) <= 200
    assert shown.count("\n") < 10
    assert output.most <= 201


async def test_binary_output_is_only_named() -> None:
    assert await shown_output(Output(b"\0" * 1000), CAPS) == "[the output is binary, 1,000 bytes; it is in /out]"


HIDING = Hiding(
    redact=lambda text: text.replace("hunter2-hunter2", "[secret KEY]"),
    mask=lambda text: text.replace("hunter2-hunter2", "[secret KEY]***"),
)


class Kept(FakeRunning):
    """Counts how often its output was replaced."""

    rewritten = 0

    async def rewrite(self, data: bytes) -> None:
        self.rewritten += 1
        await super().rewrite(data)


def wrote(output: bytes) -> Kept:
    """A command that wrote that."""
    return Kept("s/1", Command(text="curl", folder="/w"), Play(output=output), FakeClock())


async def test_what_is_kept_of_an_output_holds_no_secret_and_every_other_byte() -> None:
    running = wrote(b"\xff hunter2-hunter2\r\n\0")
    await Covers(HIDING).hide(running)

    assert await running.read(0, 100) == b"\xff [secret KEY]\r\n\0"


async def test_an_output_without_secrets_is_left_alone() -> None:
    running = wrote(b"words")
    await Covers(HIDING).hide(running)

    assert running.rewritten == 0


@pytest.mark.parametrize("at", [0, CHUNK - 5, CHUNK - OVERLAP - 3, 2 * CHUNK - 7, REWRITTEN])
async def test_in_a_large_output_secrets_are_covered_where_they_stand(at: int) -> None:
    content = b"\xff" * at + b"hunter2-hunter2" + b"\n" * (REWRITTEN + 100)
    running = wrote(content)
    await Covers(HIDING).hide(running)

    assert running.rewritten == 0
    assert await running.read(0, len(content)) == content.replace(b"hunter2-hunter2", b"[secret KEY]***")


async def test_each_part_is_looked_through_once_and_what_was_half_written_again() -> None:
    looked: list[int] = []

    def mask(text: str) -> str:
        looked.append(len(text))
        return HIDING.mask(text)

    running = wrote(b"a" * 100_000 + b"hunter2-")
    cover = Cover(running, Hiding(mask=mask))
    await cover.catch_up()
    await cover.catch_up()
    running.goes_on(b"hunter2 and more")
    await cover.catch_up()

    assert (await running.read(0, 200_000))[100_000:] == b"[secret KEY]*** and more"
    assert looked[0] == 100_008
    assert len(looked) == 2
    assert looked[1] <= OVERLAP + 4096 + 16


async def test_a_mask_of_another_length_changes_nothing() -> None:
    running = wrote(b"hunter2-hunter2")
    await Cover(running, Hiding(mask=lambda _: "x")).catch_up()

    assert await running.read(0, 100) == b"hunter2-hunter2"


async def test_what_a_command_wrote_is_covered_when_this_process_ends_before_it() -> None:
    running = wrote(b"")
    keeping = asyncio.ensure_future(Covers(HIDING).keep(running))
    await asyncio.sleep(0)
    running.goes_on(b"hunter2-hunter2")
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping

    assert await running.read(0, 100) == b"[secret KEY]***"
