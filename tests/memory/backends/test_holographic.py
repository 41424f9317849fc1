"""The memory on this machine."""

import asyncio
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.memory.backends.holographic import Fact, Feedback, Holographic, likeness, nearest, vector
from tests.memory.house import Call


@pytest.fixture
def memory(tmp_path: Path) -> Holographic:
    return Holographic(file=tmp_path / "facts/hermes.json")


def test_a_vector_is_like_itself_less_like_its_neighbour_and_unlike_others():
    one = vector("the cat sleeps on the sofa")

    assert likeness(one, one) == pytest.approx(1.0)
    assert 0.3 < likeness(one, vector("the cat sleeps")) < 1.0
    assert abs(likeness(one, vector("deploy staging first"))) < 0.3
    assert likeness(one, vector("")) == 0.0


def test_the_order_of_words_counts():
    said = vector("ann pays bob")

    assert likeness(said, vector("ann pays bob")) > likeness(said, vector("bob pays ann"))


def test_a_rare_word_finds_more_than_a_common_one():
    facts = [Fact(id=number, text=f"the build of part {number} uses make") for number in range(9)]
    wanted = Fact(id=10, text="the build of kestrel uses ninja")

    assert nearest([*facts, wanted], "how does kestrel build")[0] == wanted


async def test_what_was_wrong_is_recalled_less_until_it_is_not(memory: Holographic):
    await memory.add("Tea is at four.")
    await memory.add("Tea is at five.")

    async def of(_: object) -> Holographic:
        return memory

    told = await Feedback(of).fact_feedback(Call(), 1, False)  # type: ignore[arg-type]  # a context by its shape
    assert told == "Trust of fact 1 is now 0.3."
    assert (await memory.recall("When is tea?"))[0].startswith("Tea is at five.")
    for _ in range(3):
        await memory.judge(1, helpful=False)

    assert all("four" not in text for text in await memory.recall("When is tea?"))
    with pytest.raises(ToolError, match="no fact 7"):
        await memory.judge(7, helpful=True)


async def test_a_fact_is_kept_once_and_many_at_once_are_all_kept(memory: Holographic):
    async with asyncio.TaskGroup() as group:
        for number in range(12):
            group.create_task(memory.add(f"Number {number % 6} is known."))

    assert await memory.health() == "6 facts"


async def test_a_damaged_file_is_said_and_left_alone(memory: Holographic):
    await memory.add("Tea is at four.")
    memory.file.write_text("{")

    with pytest.raises(HermesError, match="damaged"):
        await memory.recall("tea")
    with pytest.raises(HermesError, match="damaged"):
        await memory.add("More.")
    assert memory.file.read_text() == "{"
