"""The shape of the source: logical lines, nodes, small files, late imports, what a surface reaches by an attribute.

A logical line is a statement that is no docstring, or an `except` clause. Nodes are all those of the trees, so that
dense lines win nothing. The head of a file is its docstring, imports and blank lines before the first other statement.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.figures import Figure

SOURCE = Path(__file__).parents[1] / "src/hermes_agent"
SMALL = 60
TABLES = frozenset(
    ("vendors", "dialects", "channels", "backends", "commands", "documents", "search", "operations", "pages", "formats")
)
"""Folders of extensions: a file in one of them is a line of a table, however small it is."""
SURFACES = frozenset(("gateway", "api", "cli", "tui", "dashboard", "acp", "mcp_server", "ops"))
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
    "gateway/matrix/decryption.py": "the keys of matrix-nio",
    "gateway/matrix/devices.py": "the keys of matrix-nio",
}
"""Files in which `.store` is another thing, and which."""
BEFORE = {
    "logical lines": 52_270,
    "nodes": 613_712,
    "lines": 88_633,
    "files": 816,
    "files of 60 lines or fewer": 125,
    "heads of files, %": 13.6,
    "late()": 215,
    "store or scheduler reached from a surface": 38,
}
"""The same before the names were changed and the boundaries drawn anew."""


@dataclass(slots=True, kw_only=True)
class Shape:
    """What was counted. `reaches` names each place; `alone` each small module that one other module imports."""

    logical: Counter[str] = field(default_factory=Counter)
    totals: Counter[str] = field(default_factory=Counter)
    reaches: list[str] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)

    @property
    def figures(self) -> Mapping[str, float]:
        """The figures of `BEFORE` as they are."""
        totals = self.totals
        return {
            "logical lines": self.logical.total(),
            "nodes": totals["nodes"],
            "lines": totals["lines"],
            "files": totals["files"],
            "files of 60 lines or fewer": totals["small"],
            "heads of files, %": round(100 * totals["heads"] / max(1, totals["lines"]), 1),
            "late()": totals["late"],
            "store or scheduler reached from a surface": len(self.reaches),
        }


def measure() -> list[Figure]:
    """The figures beside those before, then the logical lines of each package."""
    shape = shape_of(SOURCE)
    rows = [Figure(name=name, value=value, unit="", floor=BEFORE[name]) for name, value in shape.figures.items()]
    return rows + [
        Figure(name=f"logical lines: {name}", value=count, unit="") for name, count in shape.logical.most_common()
    ]


def shape_of(root: Path) -> Shape:
    """Count every Python file below a package's folder."""
    shape, importers, named = Shape(), Counter[str](), set[str]()
    small: dict[str, str] = {}
    for path in sorted(root.rglob("*.py")):
        text, parts = path.read_text(), path.relative_to(root).parts
        tree = ast.parse(text)
        nodes, lines = list(ast.walk(tree)), len(text.splitlines())
        package = parts[0] if len(parts) > 1 else "(top)"
        shape.logical[package] += sum(map(_is_logical, nodes))
        body = next(
            (n for n in tree.body if not _is_docstring(n) and not isinstance(n, ast.Import | ast.ImportFrom)), None
        )
        shape.totals += Counter(
            files=1,
            lines=lines,
            nodes=len(nodes),
            heads=(body.lineno - 1) if body else lines,
            late=sum(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "late" for n in nodes),
        )
        own = ".".join((root.name, *parts)).removesuffix(".py").removesuffix(".__init__")
        importers.update(_imported(nodes) - {own})
        named |= _named(nodes)
        if lines <= SMALL and path.stem != "__init__" and path.parent.name not in TABLES:
            shape.totals["small"] += 1
            small[own] = "/".join(parts)
        shape.reaches += reaches("/".join(parts), nodes)
    shape.alone = sorted(path for module, path in small.items() if importers[module] == 1 and module not in named)
    return shape


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_head(node: ast.AST) -> bool:
    return _is_docstring(node) or isinstance(node, ast.Import | ast.ImportFrom)


def _is_logical(node: ast.AST) -> bool:
    return isinstance(node, ast.ExceptHandler) or (isinstance(node, ast.stmt) and not _is_docstring(node))


def reaches(path: str, nodes: Iterable[ast.AST]) -> list[str]:
    """Each place of a surface's file that goes past the operations."""
    if path.partition("/")[0] not in SURFACES:
        return []
    found = ((node, _past(node, is_other=path in OTHERS)) for node in nodes)
    return [f"{path}:{node.lineno}: {name}" for node, name in found if name]  # type: ignore[attr-defined]  # each of these has a line


def _past(node: ast.AST, *, is_other: bool) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Call(args=[_, ast.Constant(value=name)], func=ast.Name(id="getattr")):
            return name if name in INSIDE and not (is_other and name == "store") else ""
        case ast.arg(arg="store"):
            return "" if is_other else "store"
        case ast.ImportFrom(module=str(name)) | ast.Constant(value=str(name)) | ast.alias(name=name):
            return name if name.startswith(MODULES) else ""
        case _:
            return ""


def _imported(nodes: Iterable[ast.AST]) -> set[str]:
    modules = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name for node in modules for name in (node.module, *(f"{node.module}.{each.name}" for each in node.names))}


def _named(nodes: Iterable[ast.AST]) -> set[str]:
    """The modules that a table names as text: `"package.module:attr"`."""
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {text.partition(":")[0] for text in texts if ":" in text}
