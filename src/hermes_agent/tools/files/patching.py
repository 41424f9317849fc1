"""Patch parsing and application for the tool `patch`: text replacement, and hunks of patch files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.edits import plainer, replace
from hermes_agent.core.errors import BadArguments, ToolError
from hermes_agent.tools.files.content import binary_kind, coding_of, newline_of
from hermes_agent.tools.files.guard import Guard
from hermes_agent.tools.files.reading import missing
from hermes_agent.tools.files.writing import Change, Version, version_of

NOWHERE = "/dev/null"
_HUNK = re.compile(r"@@ -(?P<old>\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_HEADS = {"*** Add File: ": "add", "*** Update File: ": "update", "*** Delete File: ": "delete"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """One hunk of a patch: lines with their sign (` ` context, `-` removed, `+` added).

    `line`: where the old lines should begin (0: unknown); `anchor`: a line that precedes them.
    """

    rows: tuple[tuple[str, str], ...]
    line: int = 0
    anchor: str = ""

    @property
    def old(self) -> list[str]:
        """The lines that must be present."""
        return [text for sign, text in self.rows if sign != "+"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch:
    """The changes of a patch to one file. `content`: of an added file; `moved`: the new path of a moved one."""

    kind: Literal["add", "update", "delete"]
    path: str
    hunks: tuple[Hunk, ...] = ()
    content: str = ""
    moved: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths that it touches."""
        return (self.path, self.moved) if self.moved else (self.path,)


def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """Parse a patch into its changes, in order. Raises `BadArguments` with the invalid line."""
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
            return FilePatch(kind="add", path=path, content=_added_lines(body))
        case _:
            moved = body[0][1].removeprefix("*** Move to: ").strip() if body and "*** Move to: " in body[0][1] else ""
            return FilePatch(kind="update", path=path, moved=moved, hunks=tuple(_hunks(body[bool(moved) :], path)))


def _added_lines(body: list[tuple[int, str]]) -> str:
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


# How lines may differ and still be meant, the strictest first.
_ALIKE: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("", lambda row: row),
    ("trailing spaces overlooked", str.rstrip),
    ("indentation overlooked", str.strip),
    ("spaces, quotes and dashes overlooked", lambda row: " ".join(plainer(row).split())),
)


def apply_hunks(content: str, hunks: Sequence[Hunk], shown: str) -> tuple[str, str]:
    """Apply all hunks. Returns the content, and which differences were tolerated to find them. Raises `ToolError`."""
    rows, cursor, shift, overlooked = content.split("\n"), 0, 0, ""
    for hunk in hunks:
        at, note = _place(rows, hunk, cursor, shift, shown)
        made = _made(rows, hunk, at)
        size = len(hunk.old)
        rows[at : at + size] = made
        cursor, shift = at + len(made), shift + len(made) - size
        overlooked = overlooked or note
    return "\n".join(rows), overlooked


def _place(rows: list[str], hunk: Hunk, cursor: int, shift: int, shown: str) -> tuple[int, str]:
    """Where the hunk's old lines begin; matches after an earlier hunk are preferred."""
    first = _after_anchor(rows, hunk, cursor, shown)
    old, told = hunk.old, hunk.line - 1 + shift if hunk.line else None
    if not old:
        if told is None and not hunk.anchor:
            return len(rows) - (rows[-1] == ""), ""
        return (first if told is None else min(len(rows), max(0, told + 1))), ""
    for note, alike in _ALIKE:
        wanted, have = [alike(row) for row in old], [alike(row) for row in rows]
        places = [at for at in range(first, len(rows) - len(old) + 1) if have[at : at + len(old)] == wanted]
        if told is not None and places:
            return min(places, key=lambda at: abs(at - told)), note
        if len(places) == 1 or (places and hunk.anchor):
            return places[0], note
        if places:
            lines = ", ".join(str(at + 1) for at in places[:5])
            raise ToolError(
                f"{shown}: these lines stand at {len(places)} places (lines {lines}): {_quoted(old)}.",
                hint="Give more lines around them, or the line before them after `@@`.",
            )
    raise ToolError(f"{shown}: these lines were not found: {_quoted(old)}.", hint="Read the file again.")


def _after_anchor(rows: list[str], hunk: Hunk, cursor: int, shown: str) -> int:
    if not hunk.anchor:
        return cursor
    for start in (cursor, 0):
        found = next((at for at in range(start, len(rows)) if rows[at].strip() == hunk.anchor), None)
        if found is not None:
            return found if hunk.old[:1] and hunk.old[0].strip() == hunk.anchor else found + 1
    raise ToolError(f"{shown}: the line `@@ {hunk.anchor[:120]}` was not found.", hint="Read the file again.")


def _made(rows: list[str], hunk: Hunk, at: int) -> list[str]:
    """The changed lines: context lines as in the file, added ones with its indentation."""
    made: list[str] = []
    position, (given, real) = at, _indents(rows, hunk, at)
    for sign, text in hunk.rows:
        if sign == "+":
            made.append(real + text.removeprefix(given) if text.strip() and text.startswith(given) else text)
            continue
        if text.strip():
            given, real = _indent(text), _indent(rows[position])
        if sign == " ":
            made.append(rows[position])
        position += 1
    return made


def _indents(rows: list[str], hunk: Hunk, at: int) -> tuple[str, str]:
    """Indentation of the first non-blank old line: as given, and as in the file."""
    return next(((_indent(text), _indent(rows[at + n])) for n, text in enumerate(hunk.old) if text.strip()), ("", ""))


def _indent(row: str) -> str:
    return row[: len(row) - len(row.lstrip())]


def _quoted(old: list[str]) -> str:
    return f"`{' / '.join(row.strip() for row in old[:3])[:160]}`"


# What is done to the text of a file: its new text, and what was overlooked or how often.
_Edit = Callable[[str], tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """Builds the file changes (`Change`) that a call of the tool `patch` asks for."""

    guard: Guard
    workspace: str

    def replacing(self, path: str, old: str, new: str, *, everywhere: bool) -> Change:
        """A change that replaces `old` by `new`."""

        def edit(text: str) -> tuple[str, str]:
            done = replace(text, old.replace("\r\n", "\n"), new.replace("\r\n", "\n"), everywhere=everywhere)
            places = "" if done.count == 1 else f" at {done.count} places"
            return done.content, f"{places}{'' if done.strategy == 'exact' else f' ({done.strategy})'}"

        return self._editing(path, edit)

    def of_patch(self, text: str) -> list[Change]:
        """The changes of a patch; removals come last, so that a crash in between loses nothing."""
        changes = [change for each in parse_patch(text) for change in self._of(each)]
        return sorted(changes, key=lambda change: change.removes)

    def _of(self, wanted: FilePatch) -> Iterator[Change]:
        def edit(text: str) -> tuple[str, str]:
            content, note = apply_hunks(text, wanted.hunks, wanted.path)
            return content, f" ({note})" if note else ""

        match wanted.kind:
            case "add":
                yield Change(path=wanted.path, make=lambda before: _added(before, wanted), blind=True)
            case "delete":
                yield _removing(wanted.path, f"Removed {wanted.path}.")
            case "update" if wanted.moved:
                yield Change(path=wanted.moved, make=lambda before: self._moved(before, wanted, edit), blind=True)
                yield _removing(wanted.path, "")
            case "update":
                yield self._editing(wanted.path, edit)

    def _editing(self, path: str, edit: _Edit) -> Change:
        def make(before: Version) -> tuple[bytes, str]:
            content, note = self._edited(before, path, edit)
            return content, f"Patched {path}{note}."

        return Change(path=path, make=make, blind=True)

    def _moved(self, before: Version, wanted: FilePatch, edit: _Edit) -> tuple[bytes, str]:
        if before.content is not None:
            raise ToolError(f"{wanted.moved} exists already; {wanted.path} was not moved there.")
        source = version_of(self.guard.locate(wanted.path, self.workspace, writes=True), wanted.path)
        content, note = self._edited(source, wanted.path, edit)
        return content, f"Moved {wanted.path} to {wanted.moved}{note}."

    def _edited(self, before: Version, path: str, edit: _Edit) -> tuple[bytes, str]:
        """The content after the edit, in the file's own encoding and line endings."""
        if before.content is None:
            raise missing(Path(self.guard.locate(path, self.workspace)), path)
        if binary_kind(before.content[:8192]):
            raise ToolError(f"{path} is {binary_kind(before.content[:8192])}, not text.")
        coding = coding_of(before.content)
        text = coding.decode(before.content)
        crlf = newline_of(text) == "\r\n" and text.count("\n") == text.count("\r\n")
        done, note = edit(text.replace("\r\n", "\n") if crlf else text)
        _check_characters(done, text)
        return coding.encode(done.replace("\n", "\r\n") if crlf else done), note


def _added(before: Version, wanted: FilePatch) -> tuple[bytes, str]:
    if before.content is not None:
        raise ToolError(f"{wanted.path} exists already.", hint="Change it with `*** Update File: `.")
    _check_characters(wanted.content, "")
    return wanted.content.encode(), f"Created {wanted.path}, {wanted.content.count(chr(10))} lines."


def _removing(path: str, words: str) -> Change:
    def make(before: Version) -> tuple[None, str]:
        if before.content is None:
            raise ToolError(f"{path} does not exist and cannot be removed.")
        return None, words

    return Change(path=path, make=make, blind=True, removes=True)


def _check_characters(text: str, before: str) -> None:
    """Raise `ToolError` for lone surrogates from the model; those that stand for the file's own bytes may stay."""
    halves = {character for character in text if "\ud800" <= character <= "\udfff"}
    if halves - set(before):
        raise ToolError("The text holds half of a surrogate pair, which no file can hold.")
