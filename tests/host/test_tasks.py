"""Background work is kept, named, and its failures are seen."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Callable

import pytest

from hermes_agent.host.tasks import cancelled, in_own_thread, spawn


async def test_a_task_that_nobody_holds_still_ends() -> None:
    done = asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0.01)
        done.set()

    spawn(work(), name="work")
    gc.collect()

    await asyncio.wait_for(done.wait(), 5)


async def test_a_failure_stands_in_the_log_under_the_tasks_name(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        raise ValueError("the disk fell out")

    task = spawn(work(), name="night watch")
    with caplog.at_level(logging.ERROR):
        await asyncio.wait([task])
        await asyncio.sleep(0)

    assert "night watch" in caplog.text
    assert "the disk fell out" in caplog.text


async def test_a_cancelled_task_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    task = spawn(asyncio.sleep(60), name="sleeper")
    await asyncio.sleep(0)

    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert not caplog.records


async def test_the_value_is_given_to_whoever_awaits() -> None:
    async def work() -> int:
        return 42

    assert await spawn(work(), name="answer") == 42


def fails() -> int:
    raise ValueError("broken")


async def test_a_thread_of_its_own_gives_its_result_or_its_failure() -> None:
    assert await in_own_thread(lambda: threading.current_thread().daemon)
    with pytest.raises(ValueError, match="broken"):
        await in_own_thread(fails)


@pytest.mark.parametrize("work", [lambda: 1, fails])
async def test_work_that_nobody_waits_for_any_more_ends_unseen(work: Callable[[], int]) -> None:
    goes, gone = threading.Event(), threading.Event()

    def late() -> int:
        goes.wait(60)
        try:
            return work()
        finally:
            gone.set()

    task = asyncio.create_task(in_own_thread(late))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait((task,))
    goes.set()

    assert await asyncio.to_thread(gone.wait, 5)
    assert task.cancelled()


async def test_cancelled_tasks_have_ended_afterwards_and_none_is_no_matter():
    ended: list[str] = []

    async def work(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    tasks = [spawn(work(name), name=name) for name in ("a", "b")]
    await asyncio.sleep(0)
    await cancelled(tasks)
    await cancelled([])

    assert sorted(ended) == ["a", "b"]
    assert all(task.cancelled() for task in tasks)
