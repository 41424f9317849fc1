"""No surface reaches the store, the scheduler or a session's journal: what a person may ask for is an operation of the
app, and what a program needs of a session is a method of the front door."""

import ast
from collections.abc import Iterable, Iterator

import pytest

from bench.shape import SURFACES
from tests.architecture.source import PACKAGE, Source, source, sources

pytestmark = pytest.mark.timeout(120)  # The first of a process parses everything.

INSIDE = frozenset(("store", "scheduler", "journal", "journal_of", "holding", "bus"))
"""Attributes behind which a store, a scheduler or a journal is, whatever they are read from."""
MODULES = (
    "hermes_agent.store",
    "hermes_agent.runs.scheduler",
    "hermes_agent.runs.locks",
    "hermes_agent.agent.journal",
    "hermes_agent.app.household",
)
"""Modules that a surface names in no way: not at the top, not for a type, not as a text that is loaded late."""
OTHERS = {
    "gateway/matrix/decryption.py": ("store", "the keys of matrix-nio"),
    "gateway/matrix/devices.py": ("store", "the keys of matrix-nio"),
    "gateway/matrix/machine.py": ("store", "the keys of matrix-nio"),
}
"""Files in which such an attribute is another thing, and which."""


def reaches(module: Source) -> Iterator[str]:
    """Each place of a surface that goes past the operations."""
    inside = module.path.relative_to(PACKAGE)
    if inside.parts[0] not in SURFACES:
        return
    other = OTHERS.get(str(inside), ("", ""))[0]
    for node in module.nodes:
        match node:
            case ast.Attribute(attr=name) | ast.Call(args=[_, ast.Constant(value=name)], func=ast.Name(id="getattr")):
                is_past = name in INSIDE and name != other
            case ast.arg(arg=name):
                is_past = name == "store" != other
            case ast.ImportFrom(module=str(name)) | ast.Constant(value=str(name)) | ast.alias(name=name):
                is_past = name.startswith(MODULES)
            case _:
                continue
        if is_past:
            yield f"{inside}:{node.lineno}: {name}"


def found_in(modules: Iterable[Source]) -> list[str]:
    return [each for module in modules for each in reaches(module)]


def test_no_surface_reaches_the_store_the_scheduler_or_a_journal():
    assert found_in(sources(str(PACKAGE))) == []


def test_no_exception_outlives_its_reason():
    paths = {str(each.path.relative_to(PACKAGE)): each for each in sources(str(PACKAGE))}
    for name, (word, _) in OTHERS.items():
        assert any(isinstance(node, ast.Attribute) and node.attr == word for node in paths[name].nodes)


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
