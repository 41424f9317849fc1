"""A file lock that is waited for on the event loop: no thread is taken, and a wait can be ended."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hermes_agent.core.activity import Activity, activity
from hermes_agent.core.errors import HomeError
from hermes_agent.host.locks import change_under, held, in_thread
from tests.host.test_lock_file import other_holder


async def test_two_never_hold_it_at_once_and_the_first_to_ask_is_the_first(tmp_path: Path) -> None:
    inside: list[int] = []
    order: list[int] = []

    async def one(number: int) -> None:
        async with held(tmp_path / "a.lock"):
            inside.append(number)
            order.append(number)
            await asyncio.sleep(0)
            assert inside == [number]
            inside.remove(number)

    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(one(number))
    assert order == list(range(5))


async def test_a_lock_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "nowhere").touch()

    with pytest.raises(HomeError, match="cannot be locked"):
        async with held(tmp_path / "nowhere" / "a.lock"):
            pass


async def test_who_waits_takes_no_thread_is_told_whom_for_and_leaves_when_cancelled(tmp_path: Path) -> None:
    loop, path = asyncio.get_running_loop(), tmp_path / "a.lock"
    loop.set_default_executor(ThreadPoolExecutor(1))
    said: list[str] = []
    activity.set(Activity(notify=said.append))

    async def one() -> None:
        async with held(path):
            raise AssertionError("it was free")

    with other_holder(path) as process:
        waiting = [asyncio.create_task(one()) for _ in range(20)]
        await asyncio.sleep(2.3)
        assert said == [f"Waiting: {path} is locked by process {process.pid} (flock {path.name} sh -c)."] * 20
        async with asyncio.timeout(0.5):
            assert await asyncio.to_thread(threading.current_thread) is not threading.current_thread()
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
    async with asyncio.timeout(1), held(path):
        pass


async def test_who_waits_for_this_process_is_told_for_which_work(tmp_path: Path) -> None:
    path, said = tmp_path / "a.lock", list[str]()

    async def other() -> None:
        activity.set(Activity(notify=said.append))
        async with held(path):
            pass

    activity.set(Activity(name="session s1"))
    async with held(path):
        waiting = asyncio.create_task(other())
        await asyncio.sleep(2.2)
    await waiting

    assert said == [f"Waiting: {path} is locked by this process, session s1, for 2 s."]


async def test_the_next_holder_comes_soon_after_another_process_let_go(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with other_holder(path):
        waiting = asyncio.create_task(change_under(path, time.monotonic))
        await asyncio.sleep(0.5)
    free = time.monotonic()

    assert await waiting - free < 0.3


async def test_work_under_a_lock_is_over_when_the_lock_is_let_go(tmp_path: Path) -> None:
    path, begun, ends, done = tmp_path / "a.lock", threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        begun.set()
        ends.wait()
        done.append("work")

    first = asyncio.create_task(change_under(path, work))
    while not begun.is_set():
        await asyncio.sleep(0.01)
    first.cancel()
    second = asyncio.create_task(change_under(path, lambda: done.append("next")))
    await asyncio.sleep(0.1)
    assert done == []
    ends.set()
    await second

    assert done == ["work", "next"]
    assert first.cancelled()
    assert await in_thread(lambda: 1) == 1
