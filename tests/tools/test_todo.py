"""A plan is kept per session, also for the next process."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.core.errors import BadArguments
from hermes_agent.tools.schema import collect
from hermes_agent.tools.todo import Todos, TodoTools
from tests.tools.bench import Bench


@pytest.fixture
def todos(tmp_path: Path) -> Todos:
    return Todos(tmp_path / "todo")


def bench(todos: Todos, session: str = "s1") -> Bench:
    return Bench(collect([TodoTools(todos)])[0], Path("/"), session)


PLAN = [{"id": "1", "content": "read"}, {"id": "2", "content": "write", "status": "in_progress"}]


async def test_a_plan_is_kept_and_shown(todos: Todos) -> None:
    assert await bench(todos)("todo", todos=PLAN) == "[ ] 1: read\n[>] 2: write"
    assert await bench(todos)("todo") == "[ ] 1: read\n[>] 2: write"


async def test_merging_changes_the_items_named_and_adds_new_ones(todos: Todos) -> None:
    plan = bench(todos)
    await plan("todo", todos=PLAN)

    merged = await plan(
        "todo",
        todos=[{"id": "1", "content": "read", "status": "completed"}, {"id": "3", "content": "test"}],
        merge=True,
    )

    assert merged == "[x] 1: read\n[>] 2: write\n[ ] 3: test"


async def test_without_merging_the_plan_is_replaced(todos: Todos) -> None:
    plan = bench(todos)
    await plan("todo", todos=PLAN)

    assert await plan("todo", todos=[]) == "The plan is empty."


async def test_sessions_have_plans_of_their_own(todos: Todos) -> None:
    await bench(todos, "s1")("todo", todos=PLAN)

    assert await bench(todos, "../s1")("todo") == "The plan is empty."


async def test_an_unknown_status_is_answered_with_its_path(todos: Todos) -> None:
    with pytest.raises(BadArguments, match=r"\$\.todos\[0\]\.status"):
        await bench(todos)("todo", todos=[{"id": "1", "content": "a", "status": "done"}])
