"""core is plain: the standard library and itself, nothing else."""

import ast
import sys
from collections.abc import Iterable, Iterator

from tests.architecture.source import PACKAGE, Source, source, sources


def imported(module: Source) -> Iterator[str]:
    for node in module.nodes:
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=origin, level=level):
                yield "." * level + (origin or "")


def foreign(modules: Iterable[Source]) -> list[str]:
    return [
        f"{module.path}: imports {name}"
        for module in modules
        for name in imported(module)
        if name.split(".")[0] not in sys.stdlib_module_names and not f"{name}.".startswith("hermes_agent.core.")
    ]


def test_core_needs_only_the_standard_library():
    assert foreign(sources(str(PACKAGE / "core"))) == []


def test_a_foreign_import_is_found_also_inside_a_function():
    assert foreign([source("a.py", "def f():\n    import msgspec\n")]) == ["a.py: imports msgspec"]
    assert foreign([source("a.py", "from hermes_agent.host import paths\n")]) == ["a.py: imports hermes_agent.host"]
    assert foreign([source("a.py", "import json\nfrom hermes_agent.core.clock import Ids\n")]) == []
