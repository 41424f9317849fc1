"""Each file with logic has its tests beside it: `src/hermes_agent/core/ids.py` in `tests/core/test_ids.py`."""

import ast
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath

from tests.architecture.source import PACKAGE, ROOT, Source, source, sources

# Files, or whole folders, whose tests stand elsewhere, and where.
ELSEWHERE: dict[str, str] = {}


def has_logic(module: Source) -> bool:
    """Whether any function does something: not a declaration of a Protocol, an abstract method, or an overload."""
    functions = (node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return any(not isinstance(line, ast.Expr | ast.Pass) or is_call(line) for node in functions for line in node.body)


def is_call(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Call | ast.Await | ast.Yield | ast.YieldFrom)


def untested(modules: Iterable[Source], tests: Collection[PurePosixPath], elsewhere: Mapping[str, str]) -> list[str]:
    found = []
    for module in modules:
        inside = module.path.relative_to(PACKAGE)
        mirror, stem = PurePosixPath("tests") / inside.parent, inside.stem.strip("_")
        has_tests = any(
            test.parent == mirror / stem
            or (test.parent == mirror and (test.stem == f"test_{stem}" or test.stem.startswith(f"test_{stem}_")))
            for test in tests
        )
        excused = any(str(place) in elsewhere for place in (inside, *inside.parents))
        if has_logic(module) and not has_tests and not excused:
            found.append(f"{module.path}: has logic and no {mirror}/test_{stem}.py")
    return found


def stale(modules: Iterable[Source], elsewhere: Mapping[str, str]) -> list[str]:
    """Exceptions that no file needs any more, or that name no test that is there."""
    paths = {place for module in modules for place in _places(module.path.relative_to(PACKAGE))}
    gone = [f"{place}: is no more" for place in elsewhere if place not in paths]
    return gone + [f"{place}: {test} is not there" for place, test in elsewhere.items() if not (ROOT / test).exists()]


def _places(path: PurePosixPath) -> list[str]:
    return [str(place) for place in (path, *path.parents)]


def test_every_file_with_logic_has_its_tests_beside_it():
    tests = [test.path for test in sources("tests")]
    assert untested(sources(str(PACKAGE)), tests, ELSEWHERE) == []


def test_no_exception_outlives_its_reason():
    assert stale(sources(str(PACKAGE)), ELSEWHERE) == []


LOGIC = source("src/hermes_agent/core/ids.py", "def make():\n    return 1\n")


def test_a_file_without_tests_is_found():
    assert untested([LOGIC], [], {}) == ["src/hermes_agent/core/ids.py: has logic and no tests/core/test_ids.py"]
    assert untested([LOGIC], [PurePosixPath("tests/core/test_identity.py")], {}) != []
    assert untested([LOGIC], [PurePosixPath("tests/store/test_ids.py")], {}) != []


def test_tests_may_be_one_file_several_or_a_folder():
    for test in ("tests/core/test_ids.py", "tests/core/test_ids_of_runs.py", "tests/core/ids/test_random.py"):
        assert untested([LOGIC], [PurePosixPath(test)], {}) == []


def test_a_file_or_folder_may_be_tested_elsewhere():
    assert untested([LOGIC], [], {"core": "tests/contracts"}) == []
    assert untested([LOGIC], [], {"core/ids.py": "tests/contracts"}) == []


def test_declarations_are_not_logic():
    text = (
        'class A(Protocol):\n    def run(self) -> int:\n        """Runs."""\n        ...\n\n    def stop(self): ...\n'
    )
    assert not has_logic(source("a.py", text))
    assert has_logic(source("a.py", "def run():\n    other()\n"))


def test_an_exception_that_nothing_needs_is_found():
    assert stale([LOGIC], {"core/gone.py": "tests"}) == ["core/gone.py: is no more"]
    assert stale([LOGIC], {"core": "tests/no_such_folder"}) == ["core: tests/no_such_folder is not there"]
