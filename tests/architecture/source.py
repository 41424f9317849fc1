"""The program's own source, parsed once, for the tests that read it."""

import ast
import functools
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
PACKAGE = PurePosixPath("src/hermes_agent")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """One Python file. `path` is relative to the project's root; `nodes` are all those of its tree."""

    path: PurePosixPath
    text: str
    nodes: tuple[ast.AST, ...]

    @property
    def lines(self) -> int:
        return self.text.count("\n")


def source(path: str, text: str) -> Source:
    return Source(path=PurePosixPath(path), text=text, nodes=tuple(ast.walk(ast.parse(text))))


@functools.cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Every Python file below these folders of the project."""
    with _kept():
        return tuple(
            _read(file) for file in sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))
        )


@contextmanager
def _kept() -> Iterator[None]:
    """The collector of garbage looks at nothing that is made here, now or later: a million nodes stay to the end."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@functools.cache
def _read(file: Path) -> Source:
    return source(file.relative_to(ROOT).as_posix(), file.read_text())


@functools.cache
def names_used(module: Source) -> frozenset[str]:
    """The dotted names of what the file takes from other modules: `time.time`, `asyncio.create_task`, `apsw`."""
    real: dict[str, str] = {}
    used: set[str] = set()
    for node in module.nodes:
        match node:
            case ast.Import(names=names):
                used |= {name.name for name in names}
                real |= {name.asname or name.name.split(".")[0]: _bound(name) for name in names}
            case ast.ImportFrom(module=str(origin), names=names, level=0):
                used |= {f"{origin}.{name.name}" for name in names}
                real |= {name.asname or name.name: f"{origin}.{name.name}" for name in names}
    used |= {found for node in module.nodes if (found := _dotted(node, real))}
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
