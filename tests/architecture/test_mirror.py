"""Each file with logic has its tests beside it: `src/hermes_agent/core/clock.py` in `tests/core/test_clock.py`.

Small files of a folder may share one test file, which then imports each of them.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

import pytest

from tests.architecture.source import PACKAGE, ROOT, Source, names_used, source, sources

pytestmark = pytest.mark.timeout(120)  # The first of a process parses everything.

# Files, or whole folders, whose tests stand elsewhere, and where.
ELSEWHERE: dict[str, str] = {
    "acp": "tests/acp/test_journeys.py",  # over the connection of an editor
    "providers/dialects": "tests/contracts/test_dialects.py",  # one suite over the table
    "gateway/channels": "tests/contracts/test_channels.py",  # one suite over the table
    "memory/backends": "tests/contracts/test_memory_backends.py",  # the same, and one that has tests of its own too
    "store/postgres": "tests/store",  # each test of the store runs over both databases
    "store/sqlite": "tests/store",
    "tools/mcp": "tests/app/mcp/test_source.py",  # over real connections, which app opens
    "tools/web/search": "tests/tools/web/search/test_backends.py",  # one suite over the table
}


def has_logic(module: Source) -> bool:
    """Whether any function does something: not a declaration of a Protocol, an abstract method, or an overload."""
    functions = (node for node in module.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return any(not isinstance(line, ast.Expr | ast.Pass) or is_call(line) for node in functions for line in node.body)


def is_call(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Call | ast.Await | ast.Yield | ast.YieldFrom)


def untested(modules: Iterable[Source], tests: Iterable[Source], elsewhere: Mapping[str, str]) -> list[str]:
    below: defaultdict[PurePosixPath, list[Source]] = defaultdict(list)
    for test in tests:
        for folder in test.path.parents:
            below[folder].append(test)
    found = []
    for module in modules:
        inside = module.path.relative_to(PACKAGE)
        excused = any(place in elsewhere for place in places(inside))
        near = below["tests" / inside.parent]
        if has_logic(module) and not excused and not any(is_beside(test, inside) for test in near):
            found.append(f"{module.path}: has logic and no {'tests' / inside.parent}/test_{inside.stem.strip('_')}.py")
    return found


def is_beside(test: Source, inside: PurePosixPath) -> bool:
    """Whether `test` stands in the mirrored folder and is about that file: it has its name, or imports it."""
    mirror, stem = "tests" / inside.parent, inside.stem.strip("_")
    if mirror / stem in test.path.parents:
        return True
    if test.path.parent != mirror or not test.path.stem.startswith("test_"):
        return False
    dotted = ".".join(["hermes_agent", *inside.with_suffix("").parts])
    return (
        test.path.stem == f"test_{stem}"
        or test.path.stem.startswith(f"test_{stem}_")
        or any(f"{name}.".startswith(f"{dotted}.") for name in names_used(test))
    )


def stale(modules: Iterable[Source], elsewhere: Mapping[str, str]) -> list[str]:
    """Exceptions that no file needs any more, or that name no test that is there."""
    paths = {place for module in modules for place in places(module.path.relative_to(PACKAGE))}
    gone = [f"{place}: is no more" for place in elsewhere if place not in paths]
    return gone + [f"{place}: {test} is not there" for place, test in elsewhere.items() if not (ROOT / test).exists()]


def places(path: PurePosixPath) -> list[str]:
    return [str(place) for place in (path, *path.parents)]


def test_every_file_with_logic_has_its_tests_beside_it():
    assert untested(sources(str(PACKAGE)), sources("tests"), ELSEWHERE) == []


def test_no_exception_outlives_its_reason():
    assert stale(sources(str(PACKAGE)), ELSEWHERE) == []


LOGIC = source("src/hermes_agent/core/clock.py", "def make():\n    return 1\n")


def test_a_file_without_tests_is_found():
    assert untested([LOGIC], [], {}) == ["src/hermes_agent/core/clock.py: has logic and no tests/core/test_clock.py"]
    for test in ("tests/core/test_identity.py", "tests/store/test_clock.py", "tests/core/clock.py"):
        assert untested([LOGIC], [source(test, "")], {}) != []


def test_tests_may_be_one_file_several_or_a_folder():
    for test in ("tests/core/test_clock.py", "tests/core/test_clock_of_runs.py", "tests/core/clock/test_random.py"):
        assert untested([LOGIC], [source(test, "")], {}) == []


@pytest.mark.parametrize(
    "line",
    [
        "import hermes_agent.core.clock",
        "from hermes_agent.core.clock import Ids",
        "from hermes_agent.core import clock",
    ],
)
def test_tests_of_several_small_files_may_share_one_beside_them(line: str):
    assert untested([LOGIC], [source("tests/core/test_small_values.py", line)], {}) == []
    assert untested([LOGIC], [source("tests/app/test_front.py", line)], {}) != []


def test_a_file_or_folder_may_be_tested_elsewhere():
    assert untested([LOGIC], [], {"core": "tests/contracts"}) == []
    assert untested([LOGIC], [], {"core/clock.py": "tests/contracts"}) == []


def test_declarations_are_not_logic():
    text = (
        'class A(Protocol):\n    def run(self) -> int:\n        """Runs."""\n        ...\n\n    def stop(self): ...\n'
    )
    assert not has_logic(source("a.py", text))
    assert has_logic(source("a.py", "def run():\n    other()\n"))


def test_an_exception_that_nothing_needs_is_found():
    assert stale([LOGIC], {"core/gone.py": "tests"}) == ["core/gone.py: is no more"]
    assert stale([LOGIC], {"core": "tests/no_such_folder"}) == ["core: tests/no_such_folder is not there"]
