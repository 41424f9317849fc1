"""What is shown of an output whose end may never come."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hermes_agent.tools.excerpt import Caps
from hermes_agent.tools.output import shown_output


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
