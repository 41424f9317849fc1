"""The program's own source, parsed once, for the tests that read it."""

import ast
import functools
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
PACKAGE = PurePosixPath("src/hermes_agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One Python file. `path` is relative to the project's root."""

    path: PurePosixPath
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return self.text.count("\n")


def source(path: str, text: str) -> Source:
    return Source(path=PurePosixPath(path), text=text, tree=ast.parse(text))


@functools.cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Every Python file below these folders of the project."""
    return tuple(_read(file) for file in sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py")))


@functools.cache
def _read(file: Path) -> Source:
    return source(file.relative_to(ROOT).as_posix(), file.read_text())


@functools.cache
def names_used(module: Source) -> frozenset[str]:
    """The dotted names of what the file takes from other modules: `time.time`, `asyncio.create_task`, `apsw`."""
    real: dict[str, str] = {}
    used: set[str] = set()
    for node in ast.walk(module.tree):
        match node:
            case ast.Import(names=names):
                used |= {name.name for name in names}
                real |= {name.asname or name.name.split(".")[0]: _bound(name) for name in names}
            case ast.ImportFrom(module=str(origin), names=names, level=0):
                used |= {f"{origin}.{name.name}" for name in names}
                real |= {name.asname or name.name: f"{origin}.{name.name}" for name in names}
    used |= {found for node in ast.walk(module.tree) if (found := _dotted(node, real))}
    return frozenset(used)


def _bound(name: ast.alias) -> str:
    return name.name if name.asname else name.name.split(".")[0]


def _dotted(node: ast.AST, real: dict[str, str]) -> str:
    match node:
        case ast.Attribute(value=value, attr=attr) if front := _dotted(value, real):
            return f"{front}.{attr}"
        case ast.Name(id=name):
            return real.get(name, "")
    return ""
