"""What is shown of an output whose end may never come."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hermes_agent.sandbox.place import Command
from hermes_agent.testing.place import FakePlace, Play
from hermes_agent.tools.excerpt import Caps
from hermes_agent.tools.output import LENT, LOOKED_THROUGH, LOOKED_THROUGH_LENT, hide_kept, shown_output


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


def without_value(text: str) -> str:
    return text.replace("hunter2-hunter2", "[secret KEY]")


async def kept(output: bytes, text: str = "curl") -> dict[str, bytes]:
    """What was written over what a place kept of a command's output."""
    place = FakePlace(plays=lambda command: Play(output=output))
    running = await place.start("s/1", Command(text=text, folder="/w"))
    await hide_kept(running, place, without_value)
    return place.files


async def test_what_is_kept_of_an_output_holds_no_secret_and_every_other_byte() -> None:
    assert await kept(b"\xff hunter2-hunter2\r\n\0") == {"/fake/s/1/output": b"\xff [secret KEY]\r\n\0"}


async def test_an_output_without_secrets_is_left_alone() -> None:
    assert await kept(b"words") == {}


@pytest.mark.parametrize(
    ("text", "size", "removed"),
    [
        ("cat /k/1-KEY" + LENT, LOOKED_THROUGH_LENT + 1, True),
        ("cat /k/1-KEY" + LENT, LOOKED_THROUGH + 1, False),
        ("make", LOOKED_THROUGH + 1, False),
    ],
)
async def test_an_output_too_large_to_look_through_is_not_kept_where_there_was_a_secret(
    text: str, size: int, removed: bool
) -> None:
    assert ((await kept(b"x" * size, text)) != {}) == removed
