"""No module of `app/` needs itself: what it imports and what it names to be loaded late make no circle."""

import ast
import re
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from tests.architecture.source import PACKAGE, Source, source, sources

NAMED = re.compile(r"hermes_agent(?:\.\w+)+(?::\w+)?")
TABLES = {"hermes_agent.app.commands", "hermes_agent.app.work"}
"""Folders of extensions whose table names each of them: seen from outside they are one module."""


def needed(nodes: Iterable[ast.AST]) -> set[str]:
    """Every module that a file imports, but for types alone, or names."""
    found, for_types = set[str](), set[ast.AST]()
    for node in nodes:  # The outer come before the inner.
        if node in for_types or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            for_types.update(ast.iter_child_nodes(node))
            continue
        match node:
            case ast.ImportFrom(module=str(module)):
                found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
            case ast.Constant(value=str(words)) if NAMED.fullmatch(words):
                found.add(words.partition(":")[0])
    return found


def circle(modules: Mapping[str, Source]) -> list[str]:
    """The names along one circle; empty where there is none."""

    def folded(name: str) -> str:
        return next((table for table in TABLES if name.startswith(f"{table}.")), name)

    graph: dict[str, set[str]] = {}
    for name, module in modules.items():
        own = graph.setdefault(folded(name), set())
        own |= {folded(each) for each in needed(module.nodes) if each in modules} - {folded(name)}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_of_app_needs_itself():
    modules = {}
    for module in sources(str(PACKAGE / "app")):
        parts = module.path.with_suffix("").parts[1:]
        modules[".".join(parts).removesuffix(".__init__")] = module
    assert len(modules) > 50
    assert circle(modules) == []


def test_a_circle_through_a_name_is_found_and_types_make_none():
    one, two = "hermes_agent.app.one", "hermes_agent.app.two"
    first = source("one.py", f"from {two} import x")
    assert circle({one: first, two: source("two.py", f'LATE = "{one}:y"')}) != []
    assert circle({one: first, two: source("two.py", f"if TYPE_CHECKING:\n    from {one} import Y")}) == []
