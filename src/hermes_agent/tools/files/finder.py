"""File finder and regex search over a folder tree; runs as a separate script, so that a slow pattern can be killed.

    python -I -S finder.py '<the query as JSON>'

prints one JSON array per line: `[path, line number, text, is_match]`, or `[path]` for names alone; paths are
relative to the root. The folders in `SKIPPED` are never entered; links to folders are not followed.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

SKIPPED = frozenset(
    (
        ".git",
        ".hg",
        ".svn",
        ".jj",
        "node_modules",
        "__pycache__",
        ".venv",
        "venv",
        ".tox",
        ".nox",
        ".cache",
    )
)
MOST_FILE_BYTES = 20 << 20


def walk(root: str) -> Iterator[str]:
    """Regular files below `root`, sorted by name within each folder."""
    if os.path.isfile(root):  # noqa: PTH113 - this script starts with as few imports as can be
        yield ""
        return
    stack = [iter(_entries(root))]
    while stack:
        entry = next(stack[-1], None)
        if entry is None:
            stack.pop()
        elif entry.is_dir(follow_symlinks=False):
            if entry.name not in SKIPPED:
                stack.append(iter(_entries(entry.path)))
        elif entry.is_file(follow_symlinks=False):
            yield entry.path[len(root.rstrip("/")) + 1 :]


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: os.fsencode(entry.name))
    except OSError:
        return []


def glob_pattern(glob: str) -> re.Pattern[str]:
    """Compile a glob: `*`, `?`, `[a-z]`, `{a,b}`, `**` for any folders; without a slash it matches file names."""
    anchored = glob.lstrip("/") if "/" in glob else f"**/{glob}"
    out, position, depth = [], 0, 0
    while position < len(anchored):
        token, position = _token(anchored, position)
        depth += {"{": 1, "}": -1}.get(token, 0)
        out.append(_PIECES.get(token) or ("|" if token == "," and depth else _literal(token)))
    return re.compile("".join(out) + r"\Z", re.DOTALL)


_PIECES = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")"}


def _token(glob: str, position: int) -> tuple[str, int]:
    for piece in ("**/", "**"):
        if glob.startswith(piece, position):
            return piece, position + len(piece)
    end = glob.find("]", position + 2) if glob[position] == "[" else -1
    stop = end + 1 if end > 0 else position + 1
    return glob[position:stop], stop


def _literal(token: str) -> str:
    if len(token) > 1 and token.startswith("["):
        inside = token[1:-1].replace("\\", "\\\\")
        return f"[^{inside[1:]}]" if inside[0] in "!^" else f"[{inside}]"
    return re.escape(token)


def grep(path: str, pattern: re.Pattern[str], context: int) -> Iterator[tuple[int, str, bool]]:
    """Matching lines with `context` lines around each, by number; none for a binary or very large file."""
    try:
        if os.path.getsize(path) > MOST_FILE_BYTES:  # noqa: PTH202 - as above
            return
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            content = file.read()
    except OSError:
        return
    if not content or b"\0" in content:
        return
    lines = content.removesuffix(b"\n").decode("utf-8", "replace").split("\n")
    hits = {number for number, line in enumerate(lines) if pattern.search(line.removesuffix("\r"))}
    shown = sorted({near for hit in hits for near in range(hit - context, hit + context + 1) if 0 <= near < len(lines)})
    for number in shown:
        yield number + 1, lines[number].removesuffix("\r"), number in hits


def main(query: dict[str, Any]) -> None:
    """Print the results, at most `most`."""
    root, left = query["root"], query["most"]
    glob = glob_pattern(query["glob"]) if query["glob"] else None
    pattern = re.compile(query["pattern"]) if query["pattern"] else None
    for name in walk(root):
        if glob and not glob.match(name or root.rpartition("/")[2]):
            continue
        rows = [[name]] if pattern is None else [[name, *row] for row in _found(root, name, pattern, query["context"])]
        for row in rows:
            sys.stdout.write(json.dumps(row) + "\n")
            left -= pattern is None or bool(row[3])
            if left <= 0:
                return


def _found(root: str, name: str, pattern: re.Pattern[str], context: int) -> Iterator[tuple[int, str, bool]]:
    for number, text, is_match in grep(f"{root}/{name}" if name else root, pattern, context):
        yield number, text[:2000], is_match


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
