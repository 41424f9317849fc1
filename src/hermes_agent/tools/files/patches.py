"""Patches of several files: reads `*** Begin Patch` texts and unified diffs into the changes that they ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import BadArguments

NOWHERE = "/dev/null"
_HUNK = re.compile(r"@@ -(?P<old>\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_HEADS = {"*** Add File: ": "add", "*** Update File: ": "update", "*** Delete File: ": "delete"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Lines that change together: each with its sign (` ` stays, `-` goes, `+` comes).

    `line` is the line number where the old lines should begin (0: not told), `anchor` a line that stands before them.
    """

    rows: tuple[tuple[str, str], ...]
    line: int = 0
    anchor: str = ""

    @property
    def old(self) -> list[str]:
        """The lines that must be there."""
        return [text for sign, text in self.rows if sign != "+"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch:
    """What happens to one file. `content` is that of an added one; `moved` the new path of one that moves."""

    kind: Literal["add", "update", "delete"]
    path: str
    hunks: tuple[Hunk, ...] = ()
    content: str = ""
    moved: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that it touches."""
        return (self.path, self.moved) if self.moved else (self.path,)


def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """The changes in their order. Raises `BadArguments` with the line that cannot be read."""
    lines = text.replace("\r\n", "\n").strip("\n").split("\n")
    begun = lines[0].strip().startswith("*** ")
    found = tuple(_begin_patch(lines) if begun else _unified(lines))
    if not found:
        raise _unreadable(1, "it names no file; begin with `*** Begin Patch` or `--- a/path`")
    paths = [path for each in found for path in each.paths]
    twice = next((path for path in paths if paths.count(path) > 1), "")
    if twice:
        raise BadArguments(f"patch: the patch names {twice} twice - at `$.patch`", hint="Join its changes.")
    return found


def _begin_patch(lines: list[str]) -> Iterator[FilePatch]:
    starts = [number for number, line in enumerate(lines) if line.startswith(tuple(_HEADS))]
    for number, line in enumerate(lines[: starts[0] if starts else None], 1):
        if line.strip() not in ("", "*** Begin Patch"):
            raise _unreadable(number, "expected `*** Begin Patch` and then `*** Update File: path`")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        yield _section(lines, start, end)


def _section(lines: list[str], start: int, end: int) -> FilePatch:
    head = next(each for each in _HEADS if lines[start].startswith(each))
    path = lines[start].removeprefix(head).strip()
    body = [(number, line) for number, line in enumerate(lines[start + 1 : end], start + 2)]
    body = [(number, line) for number, line in body if line.strip() not in ("*** End Patch", "*** End of File")]
    match _HEADS[head]:
        case "delete":
            return FilePatch(kind="delete", path=path)
        case "add":
            return FilePatch(kind="add", path=path, content=_added(body))
        case _:
            moved = body[0][1].removeprefix("*** Move to: ").strip() if body and "*** Move to: " in body[0][1] else ""
            return FilePatch(kind="update", path=path, moved=moved, hunks=tuple(_hunks(body[bool(moved) :], path)))


def _added(body: list[tuple[int, str]]) -> str:
    for number, line in body:
        if line and not line.startswith("+"):
            raise _unreadable(number, "each line of an added file begins with `+`")
    return "".join(f"{line[1:]}\n" for _, line in body if line)


def _hunks(body: list[tuple[int, str]], path: str) -> Iterator[Hunk]:
    rows: list[tuple[str, str]] = []
    line, anchor = 0, ""
    for number, text in body:
        if text.startswith("@@"):
            if rows:
                yield Hunk(rows=tuple(rows), line=line, anchor=anchor)
            header = _HUNK.match(text)
            rows, line = [], int(header["old"]) if header else 0
            anchor = "" if header else text.removeprefix("@@").removesuffix("@@").strip()
        elif text.startswith("\\"):  # `\ No newline at end of file`: the file's own end stays
            continue
        elif text and text[0] not in " +-":
            raise _unreadable(number, f"a line of {path} begins with a space, `+` or `-`")
        else:
            rows.append((text[0], text[1:]) if text else (" ", ""))
    while rows and rows[-1] == (" ", "") and body[-1][1] == "":
        rows.pop()  # an empty line before the next file is no line of this one
    if rows:
        yield Hunk(rows=tuple(rows), line=line, anchor=anchor)


def _unified(lines: list[str]) -> Iterator[FilePatch]:
    starts = [
        number
        for number, line in enumerate(lines[:-1])
        if line.startswith("--- ") and lines[number + 1].startswith("+++ ")
    ]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        old, new = _named(lines[start]), _named(lines[start + 1])
        body = [
            (number, line)
            for number, line in enumerate(lines[start + 2 : end], start + 3)
            if not line.startswith(("diff --git ", "index ", "new file ", "deleted file ", "similarity ", "rename "))
        ]
        if new == NOWHERE:
            yield FilePatch(kind="delete", path=old)
            continue
        hunks = tuple(_hunks(body, new))
        if old == NOWHERE:
            content = "".join(f"{text}\n" for hunk in hunks for _, text in hunk.rows)
            yield FilePatch(kind="add", path=new, content=content)
        else:
            yield FilePatch(kind="update", path=old, hunks=hunks, moved=new if new != old else "")


def _named(line: str) -> str:
    path = line[4:].partition("\t")[0].strip()
    return path if path == NOWHERE else re.sub(r"^[ab]/", "", path)


def _unreadable(number: int, why: str) -> BadArguments:
    return BadArguments(f"patch: line {number} of the patch cannot be read: {why} - at `$.patch`")
