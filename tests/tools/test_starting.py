"""A command that is stopped while it is being started is ended as soon as it has begun."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hermes_agent.core.errors import ToolError
from hermes_agent.sandbox.executions import EXEC_ID
from hermes_agent.sandbox.place import Deletion, Ended
from hermes_agent.testing.place import FakePlace
from hermes_agent.tools.starting import decided, exec_name, lent_in, lent_name, started, told_meanwhile
from tests.tools.bench import Context


async def test_what_was_started_for_a_caller_who_left_is_ended():
    begins, ended = asyncio.Event(), []

    async def start():
        await begins.wait()
        return "running"

    async def end(running):
        ended.append(running)

    waiting = asyncio.ensure_future(started(start(), end, name="a"))
    await asyncio.wait([waiting], timeout=0.01)
    waiting.cancel()
    await asyncio.wait([waiting], timeout=0.01)
    begins.set()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended == ["running"]


async def test_what_could_not_be_started_is_told_and_not_ended():
    async def start():
        raise ToolError("no")

    async def end(running):
        raise AssertionError(running)

    with pytest.raises(ToolError):
        await started(start(), end, name="a")


async def test_a_person_is_told_what_the_place_waits_for_until_it_does_not():
    place, context = FakePlace(), Context(workspace="/work")
    with told_meanwhile(place, context, after=0.001):
        await asyncio.sleep(0.005)
        place.waiting = "copying files"
        while len(context.lines) < 2:
            await asyncio.sleep(0)
    lines = len(context.lines)
    await asyncio.sleep(0.005)

    assert set(context.lines) == {"copying files"}
    assert len(context.lines) == lines


ENDED = Ended(code=0, seconds=1.0, notes=("before",))


async def delete() -> str:
    return "Deleted."


def asked(count: int) -> Ended:
    return replace(ENDED, deletion=Deletion(paths=tuple(f"{number}.txt" for number in range(count)), delete=delete))


@pytest.mark.parametrize(
    ("answers", "notes"),
    [
        (["once"], ("before", "Deleted.")),
        (["Yes"], ("before", "Deleted.")),
        (["deny"], ("before", "The person said to keep them; they go there again.")),
        (["rather not"], ("before", "The person said to keep them; they go there again.")),
        ([], ("before",)),
    ],
)
async def test_nothing_is_deleted_but_for_a_yes(answers: list[str], notes: tuple[str, ...]) -> None:
    context = Context(workspace="/w", answers=answers)

    assert (await decided(asked(2), context)).notes == notes


async def test_the_files_are_listed_and_the_question_is_of_them_alone() -> None:
    context = Context(workspace="/w")
    for count in (2, 2, 25):
        await decided(asked(count), context)
    two, again, many = context.asked

    assert two.text == (
        "The command deleted files elsewhere (2). May I delete them here too? `/rollback` puts back those that the "
        "checkpoint before the command holds.\n0.txt\n1.txt\nin /w"
    )
    assert (two.choices, two.purpose) == (("once", "deny"), "approval")
    assert two.about == again.about != many.about
    assert many.text.endswith("\n19.txt\nand 5 more\nin /w")


async def test_where_nothing_is_to_be_decided_nobody_is_asked() -> None:
    context = Context(workspace="/w")

    assert await decided(ENDED, context) is ENDED
    assert context.asked == []


@pytest.mark.parametrize("text", ["call_1", "../../x", "a b", "x" * 300, "ü", ".", "toolu.1"])
def test_any_text_becomes_a_name(text: str):
    assert EXEC_ID.fullmatch(f"{exec_name(text)}/{exec_name(text)}")


def test_what_looks_alike_stays_different():
    assert len({exec_name(text) for text in ("a b", "a_b", "a.b", "a/b")}) == 4
    assert exec_name("call_1") == "call_1"


def test_the_files_that_a_call_is_lent_are_those_of_its_own_key():
    own, other = f"/x/{lent_name('s1-call_1', 'KEY')}", f"/x/{lent_name('s1-call_10', 'KEY')}"
    command = f"curl -H \"$(cat '{own}')\" -u \"$(cat '{own}')\" && cat '{other}' && cat {own}"

    assert lent_in(command, "s1-call_1") == (own,)
