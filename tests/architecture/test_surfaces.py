"""No surface reaches the store, the scheduler or a session's journal: what a person may ask for is an operation of the
app, and what a program needs of a session is a method of the front door (`bench.shape.reaches`)."""

import ast
from collections.abc import Iterable

import pytest

from bench.shape import OTHERS, reaches
from tests.architecture.source import PACKAGE, Source, source, sources

pytestmark = pytest.mark.timeout(120)  # The first of a process parses everything.


def found_in(modules: Iterable[Source]) -> list[str]:
    return [each for module in modules for each in reaches(str(module.path.relative_to(PACKAGE)), module.nodes)]


def test_no_surface_reaches_the_store_the_scheduler_or_a_journal():
    assert found_in(sources(str(PACKAGE))) == []


def test_no_exception_outlives_its_reason():
    modules = {str(each.path.relative_to(PACKAGE)): each for each in sources(str(PACKAGE))}
    for name in OTHERS:
        assert any(isinstance(node, ast.Attribute) and node.attr == "store" for node in modules[name].nodes)


@pytest.mark.parametrize(
    "line",
    [
        "found = await self._runtime.store.inbox.find(row)",
        "store = runtime.store",
        "rest = runtime.hermes.scheduler.rest",
        "with_store(surface, lambda store: ...)",
        "getattr(runtime, 'store')",
        "from hermes_agent.store.database import Store",
        "import hermes_agent.store.database",
        "late('hermes_agent.store.database:open_store')",
        "async def f(hermes):\n    async with hermes.holding(session) as given:\n        ...",
    ],
)
def test_every_way_past_the_operations_is_found(line: str):
    assert len(found_in([source("src/hermes_agent/api/thing.py", line)])) == 1
    assert found_in([source("src/hermes_agent/app/thing.py", line)]) == []
