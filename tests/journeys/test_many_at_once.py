"""Many sessions act in the same moment, with few threads or beside a program that stands still: all come to an end."""

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.core.chat import Conversation
from hermes_agent.core.events import Notice, Outcome, RunEnded, Seen
from hermes_agent.providers.demo.script import Answer, Call, Heard, Say
from tests.app.place import Place, place
from tests.host.test_lock_file import other_holder

SKILL = "---\nname: made-{0}\ndescription: What {0} is for.\n---\n\nDo it.\n"
CALLS: Mapping[str, Mapping[str, object]] = {
    "terminal": {"command": "echo {0} >> done.txt"},
    "read_file": {"path": "read.txt"},
    "write_file": {"path": "{0}.txt", "content": "{0}"},
    "memory": {"action": "add", "target": "memory", "content": "{0} was here."},
    "skill_manage": {"action": "create", "name": "made-{0}", "content": SKILL},
    "execute_code": {"code": "print('{0}')"},
}
UNASKED = "approvals:\n  mode: off\n"


def one_call(heard: Heard) -> Say | Answer:
    """A model that calls the tool that it is told, with the person's word in the arguments, and tells what it said."""
    last = heard.messages[-1]
    if last.role == "tool":
        return Say(f"It said {last.parts!r}")
    tool, word = last.text.split()
    if tool not in CALLS:
        return Say(f"Yes, {word}.")
    filled = {name: str(value).format(word) for name, value in CALLS[tool].items()}
    return Answer(pieces=(Call(tool, filled),))


async def talk(here: Place, word: str, tool: str) -> list[Seen]:
    """What is seen of a run in a session of its own."""
    conversation = Conversation(platform="cli", chat_kind="folder", chat=word)
    workspace = here.record.workspace
    record = await here.runtime.hermes.open_session(conversation, here.runtime.owner, workspace=workspace)
    inbound = replace(here.inbound(f"{tool} {word}"), conversation=conversation)
    await here.runtime.hermes.submit(inbound, record.id)
    return [each async for each in here.runtime.hermes.follow(record.id, 0)]


def end_of(seen: list[Seen]) -> RunEnded:
    assert isinstance(seen[-1].event, RunEnded)
    return seen[-1].event


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a place whose workspace has a file to read."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "read.txt").write_text("what is read")
    return tmp_path


@pytest.mark.parametrize("tool", CALLS)
async def test_sessions_that_act_at_once_are_all_answered_with_one_thread(folder: Path, tool: str) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    async with place(folder, one_call, more=UNASKED) as here:
        async with asyncio.timeout(25), asyncio.TaskGroup() as group:
            tasks = [group.create_task(talk(here, f"s{number}", tool)) for number in range(8)]
        ended = [end_of(task.result()) for task in tasks]

    assert [each for each in ended if each.outcome is not Outcome.ANSWERED or "is_error=True" in each.text] == []


async def plain_chats(here: Place, name: str, seconds: float, enough: float = 0.0) -> float:
    """The fewest seconds that a chat without tools takes; they go on for so long, or until one took less than `enough`.
    What else goes on here adds to the others."""
    until, took = time.monotonic() + seconds, [float("inf")]
    while min(took) >= enough and time.monotonic() < until:
        began, word = time.perf_counter(), f"{name}{len(took)}"
        ended = end_of(await talk(here, word, "Hello"))
        took.append(time.perf_counter() - began)
        assert ended.text == f"Yes, {word}."
    return min(took)


LOCKS = {"memory": "home/locks/memories.lock", "skill_manage": "home/skills/.lock"}


@pytest.mark.parametrize("tool", LOCKS)
async def test_sessions_that_wait_for_a_frozen_program_say_so_end_in_time_and_hold_up_nobody(
    folder: Path, tool: str
) -> None:
    limit = f"{UNASKED}agent:\n  max_seconds: 6\n"
    async with place(folder, one_call, more=limit) as here:
        alone = await plain_chats(here, "alone", 1.0)
        with other_holder(folder / LOCKS[tool]) as process:
            began = time.monotonic()
            waiting = [asyncio.create_task(talk(here, f"s{number}", tool)) for number in range(12)]
            await asyncio.sleep(1.0)  # They have begun, and wait.
            beside = await plain_chats(here, "beside", 4.0, alone + 0.010)
            async with asyncio.timeout(9 - (time.monotonic() - began)):
                seen = await asyncio.gather(*waiting)
        later = await plain_chats(here, "later", 1.0)

    assert beside - max(alone, later) < 0.010  # How busy the machine is changes.
    for each in seen:
        ended, told = end_of(each), [one.event.text for one in each if isinstance(one.event, Notice)]
        assert (ended.outcome, ended.reason) == (Outcome.LIMIT, "time limit")
        assert [text for text in told if f"is locked by process {process.pid} (flock" in text] == told[:1]
        assert len(told) == 1
