"""Whether files that a command deleted elsewhere are deleted here, a person says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes_agent.sandbox.place import Deletion, Ended
from hermes_agent.tools.deletions import decided
from tests.tools.bench import Context

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
