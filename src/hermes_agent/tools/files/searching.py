"""File search in a subprocess with a time limit (ripgrep, else `finder.py`), with paged results."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import BadArguments, ToolError
from hermes_agent.core.messages import Origin
from hermes_agent.core.tool import Answer
from hermes_agent.host import process
from hermes_agent.tools.files import finder
from hermes_agent.tools.files.content import storable
from hermes_agent.tools.schema import said

SECONDS = 30.0
MOST_OUTPUT = 8 << 20
MOST_FOUND = 20_000
MOST_CHARS = 2000
# Ends of a text that begin at each line here and not there, sets of sets, `{,5}`, and `|` with nothing beside it.
_CONTESTED = re.compile(r"\\[AzZ<>bB]\{|\\[AZz<>xuUN0-9]|\[\[|\[[^\]]*(?:&&|--|~~|\[)|\{,|\{ ")
_SCRIPT = str(Path(finder.__file__))


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A file search below `root`. An empty `pattern` lists names; `glob` filters file names or paths."""

    root: Path
    pattern: str
    glob: str = ""
    context: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A line found by the file search, or a file if `number` is 0; `path` is relative to the root. `matches` is False
    for context lines."""

    path: str
    number: int = 0
    text: str = ""
    matches: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Results of a file search, in the order of paths and lines; `cut` if there were too many."""

    hits: tuple[Hit, ...]
    cut: bool


async def search(query: Query, *, ripgrep: str = "", seconds: float = SECONDS) -> Found:
    """Run a search; both engines give the same results for UTF-8 text and common patterns. Raises `ToolError`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sets that may mean something else one day
            re.compile(query.pattern)
        glob = finder.glob_pattern(query.glob) if query.glob else None
    except re.error as error:
        where = f"`{error.pattern!s}` is not a regular expression: {error}"
        raise BadArguments(f"search_files: {where} - at `$.pattern`") from error
    try:
        if ripgrep and query.pattern and means_the_same(query.pattern):
            folder = query.root if query.root.is_dir() else query.root.parent
            ended = await process.run(_rg(ripgrep, query), env={}, cwd=str(folder), seconds=seconds, most=MOST_OUTPUT)
            if ended.code in (0, 1) or ended.cut:
                named = query.root.name if folder != query.root else ""
                found = _of_ripgrep(ended.out, named)
                hits = [hit for hit in found if glob is None or glob.match(hit.path or named)]
                return Found(hits=tuple(hits[:MOST_FOUND]), cut=ended.cut or len(hits) > MOST_FOUND)
        ended = await process.run(_own(query), env={}, seconds=seconds, most=MOST_OUTPUT)
    except TimeoutError as error:
        hint = "Narrow it with path, file_glob or a simpler pattern."
        raise ToolError(f"The search took more than {seconds:.0f} s and was ended.", hint=hint) from error
    if ended.code != 0 and not ended.cut:
        raise ToolError(f"The search failed: {ended.err.decode(errors='replace')[-300:]}")
    hits = list(_of_finder(ended.out))
    return Found(hits=tuple(hits), cut=ended.cut or sum(hit.matches for hit in hits) >= MOST_FOUND)


def means_the_same(pattern: str) -> bool:
    """Whether ripgrep interprets the pattern as Python does; patterns unknown to ripgrep it rejects itself."""
    return _CONTESTED.search(pattern) is None and (pattern.isascii() or "(?" not in pattern)


def _own(query: Query) -> list[str]:
    asked = {
        "root": str(query.root),
        "pattern": query.pattern,
        "glob": query.glob,
        "context": query.context,
        "most": MOST_FOUND,
    }
    return [sys.executable, "-I", "-S", _SCRIPT, msgspec.json.encode(asked).decode()]


def _of_finder(output: bytes) -> Iterator[Hit]:
    for row in _complete_lines(output):
        match row:
            case [str() as path]:
                yield Hit(path=path)
            case [str() as path, int() as number, str() as text, bool() as matches]:
                yield Hit(path=path, number=number, text=text, matches=matches)


def _rg(program: str, query: Query) -> list[str]:
    skipped = [part for name in sorted(finder.SKIPPED) for part in ("--glob", f"!**/{name}/**")]
    options = ["--no-config", "--json", "--hidden", "--no-ignore", "--sort=path", "--crlf", "--encoding=none"]
    limits = ["--no-mmap", "--max-filesize", str(finder.MOST_FILE_BYTES), "--context", str(query.context)]
    where = "." if query.root.is_dir() else f"./{query.root.name}"
    return [program, *options, *limits, *skipped, "--regexp", query.pattern, "--", where]


def _of_ripgrep(output: bytes, named: str) -> Iterator[Hit]:
    """Parse ripgrep's output, file by file; a file with a NUL is binary and has no hits. `named`: the file if only
    one was searched."""
    hits: list[Hit] = []
    for event in _complete_lines(output):
        match event:
            case {"type": "begin"}:
                hits = []
            case {"type": "match" | "context" as kind, "data": {"path": path, "lines": lines, "line_number": number}}:
                name = _text(path, "surrogateescape").removeprefix("./")
                text = _text(lines, "replace").removesuffix("\n").removesuffix("\r")[:MOST_CHARS]
                hits.append(
                    Hit(path="" if name == named else name, number=int(number), text=text, matches=kind == "match")
                )
            case {"type": "end", "data": {"binary_offset": None}}:
                yield from hits
                hits = []
            case {"type": "end"}:
                hits = []
    yield from hits  # of a file where the search was cut off


def _text(value: dict[str, str], errors: str) -> str:
    if "text" in value:
        return value["text"]
    raw: bytes = msgspec.convert(value["bytes"], bytes)
    return raw.decode("utf-8", errors)


def _complete_lines(output: bytes) -> Iterator[Any]:
    """The JSON values; a truncated last line is dropped."""
    decoder = msgspec.json.Decoder()
    for line in output.split(b"\n")[:-1]:
        # A name that is not UTF-8 comes as half a surrogate pair, which the fast decoder refuses.
        yield json.loads(line) if b"\\ud" in line else decoder.decode(line)


def listing(found: Found, path: str, mode: str, *, offset: int, limit: int) -> Answer:
    """A page of results, with how to get the next. `mode`: `content`, `count`, or names otherwise."""
    rows = _rows(found, mode, path)
    page = [row for number, row in rows if offset <= number < offset + limit]
    total = rows[-1][0] + 1 if rows else 0
    if not page:
        return said("Nothing found." if total == 0 else f"There are only {total} results.", Origin.RUNTIME)
    if total > offset + limit or found.cut:
        more = "more than " if found.cut else ""
        page.append(f"[{more}{total} results; go on with offset={min(offset + limit, total)}]")
    return said(storable("\n".join(page)), Origin.FILE)


def _rows(found: Found, mode: str, path: str) -> list[tuple[int, str]]:
    """Output lines, each with the number of its result."""
    match mode:
        case "content":
            return list(_lines(found, path))
        case "count":
            counts: dict[str, int] = {}
            for hit in found.hits:
                counts[hit.path] = counts.get(hit.path, 0) + hit.matches
            return [(number, f"{_name(path, name)}: {count}") for number, (name, count) in enumerate(counts.items())]
        case _:
            names = dict.fromkeys(hit.path for hit in found.hits)
            return [(number, _name(path, name)) for number, name in enumerate(names)]


def _lines(found: Found, path: str) -> list[tuple[int, str]]:
    rows: list[tuple[int, str]] = []
    matches = -1
    last: Hit | None = None
    for hit in found.hits:
        matches += hit.matches
        name = _name(path, hit.path)
        if (
            last is not None
            and last.number
            and (last.path != hit.path or hit.number > last.number + 1)
            and _has_context(found)
        ):
            rows.append((max(matches, 0), "--"))
        rows.append((max(matches, 0), f"{name}:{hit.number}{':' if hit.matches else '-'} {hit.text[:500]}"))
        last = hit
    return rows


def _has_context(found: Found) -> bool:
    return any(not hit.matches for hit in found.hits)


def _name(path: str, found: str) -> str:
    folder = path.removeprefix("./").rstrip("/")
    if folder in ("", "."):
        return found
    return f"{folder}/{found}" if found else folder
