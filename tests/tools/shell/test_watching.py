"""Lines that match are found once each, however the output comes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.core.errors import BadArguments
from hermes_agent.tools.shell.tools import Lookout, check_patterns
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
