"""Order in a chat, chats side by side, controls that nothing holds up, and an end to what is in memory."""

import asyncio
from collections.abc import Callable

import pytest

from hermes_agent.gateway.dispatcher import MOST, Cursor, dispatching, is_control


async def test_a_chat_is_taken_in_in_its_order_and_no_chat_waits_for_another():
    done: list[str] = []
    held = asyncio.Event()

    def job(name: str, *, waits: bool = False) -> Callable:
        async def act() -> None:
            if waits:
                await held.wait()
            done.append(name)

        return act

    async with dispatching() as dispatcher:
        await dispatcher.put("a", job("a1", waits=True))
        await dispatcher.put("a", job("a2"))
        await dispatcher.put("b", job("b1"))
        assert not await dispatcher.settled()
        assert done == ["b1"]
        await dispatcher.put("a", job("stop"), control=True)
        assert not await dispatcher.settled()
        await dispatcher.settled()
        assert done == ["b1", "stop"]
        await dispatcher.put("a", job("a3"))
        held.set()

    assert done == ["b1", "stop", "a1", "a2", "a3"]


async def test_a_control_comes_after_what_its_chat_said_where_that_is_quick():
    done: list[str] = []

    async def words() -> None:
        await asyncio.sleep(0)
        done.append("words")

    async def stop() -> None:
        done.append("stop")

    async with dispatching() as dispatcher:
        await dispatcher.put("a", words)
        await dispatcher.put("a", stop, control=True)

    assert done == ["words", "stop"]


async def test_a_flood_of_one_chat_is_not_read_without_end():
    held, begun = asyncio.Event(), []

    async def flood(put: Callable) -> None:
        for number in range(3 * MOST):
            await put("a", held.wait)
            begun.append(number)

    async with dispatching() as dispatcher:
        task = asyncio.create_task(flood(dispatcher.put))
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(begun) == MOST
        held.set()
        await task

    assert len(begun) == 3 * MOST


async def test_what_cannot_be_taken_in_ends_all_of_it_and_comes_out_as_it_is():
    later: list[str] = []

    async def fails() -> None:
        raise OSError("the disk is full")

    async def after() -> None:
        later.append("taken in")

    with pytest.raises(OSError, match="disk is full"):
        async with dispatching() as dispatcher:
            await dispatcher.put("a", fails)
            await dispatcher.put("a", after)
            await asyncio.sleep(60)

    assert later == []


@pytest.mark.parametrize(
    ("text", "controls"),
    [
        ("/stop", True),
        (" <@U1> /stop now", True),
        ("/topic food", True),
        ("/new", False),
        ("stop", False),
        ("a /stop", False),
    ],
)
def test_what_stops_or_moves_is_a_control(text: str, controls: bool):
    assert is_control(text) is controls


def test_a_cursor_stands_behind_what_was_taken_in_without_a_gap():
    cursor = Cursor(0)
    one, two, three = (cursor.begin(mark) for mark in (1, 2, 3))
    two(), three()
    assert cursor.mark == 0
    one()

    assert cursor.mark == 3
