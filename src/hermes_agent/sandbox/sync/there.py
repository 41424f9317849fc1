"""The files of a folder in a place that is reached by a shell: listed, hashed, sent, fetched and removed there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.sync.here import Found, Rules

# What each needs: find, stat, sha256sum, xargs and tar, of GNU or busybox.
SCAN = """cd "$1" 2>/dev/null || exit 0
date +%s
shift
find . "$@" -exec stat -c '%f %s %Y %Z %i %n' {} + 2>/dev/null
:"""
HASH = 'cd "$1" 2>/dev/null || exit 0; xargs -0 sha256sum 2>/dev/null; :'
SEND = 'mkdir -p -- "$1" && cd "$1" && exec tar -xof -'
FETCH = 'cd "$1" && xargs -0 tar -cf -'
REMOVE = 'cd "$1" && xargs -0 rm -f'
_ROW = re.compile(rb"([0-9a-f]+) (\d+) (\d+) (\d+) (\d+) \./(.+)")
_HASHED = re.compile(rb"(\\?)([0-9a-f]{64}) [ *]\./(.+)")


class Shell(Protocol):
    """- `said` gives what a script, run by `sh` there with these arguments and input, wrote; raises `PlaceFailed` with
    its words where it failed, `Unreached` where there was no answer."""

    async def said(self, script: str, *arguments: str, data: bytes = b"") -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class There:
    """One folder there. `scan` gives its files and the second at which that was, None where there is no folder."""

    shell: Shell
    folder: str
    rules: Rules

    async def scan(self) -> tuple[Found, int] | None:
        """The files that there are."""
        out = await self.shell.said(SCAN, self.folder, *self._which())
        second, _, rows = out.partition(b"\n")
        if not second:
            return None
        stamps: dict[str, tuple[int, ...]] = {}
        programs, left_out = set[str](), []
        for row in rows.splitlines():
            found = _ROW.fullmatch(row)
            path = _text(found[6]) if found else ""
            if found is None or not path or not _is_plain(path) or self.rules.leaves_out(path):
                continue
            facts = tuple(map(int, found.group(2, 3, 4, 5)))
            if facts[0] > self.rules.max_bytes:
                left_out.append(path)
                continue
            stamps[path] = facts
            if int(found[1], 16) & 0o111:
                programs.add(path)
        if len(stamps) > self.rules.max_files:
            raise PlaceFailed(f"There are more than {self.rules.max_files:,} files in {self.folder}, too many to copy.")
        return Found(stamps=stamps, programs=frozenset(programs), left_out=tuple(sorted(left_out))), int(second)

    async def digests(self, paths: Sequence[str]) -> dict[str, str]:
        """The SHA-256 of each of these files that there is."""
        if not paths:
            return {}
        out = await self.shell.said(HASH, self.folder, data=_listed(paths))
        rows = [found for row in out.splitlines() if (found := _HASHED.fullmatch(row))]
        return {_text(_plain(row[3]) if row[1] else row[3]): row[2].decode() for row in rows}

    async def send(self, archive: bytes) -> None:
        """Put the files of an archive there."""
        await self.shell.said(SEND, self.folder, data=archive)

    async def fetch(self, paths: Sequence[str]) -> bytes:
        """An archive of these files."""
        return await self.shell.said(FETCH, self.folder, data=_listed(paths)) if paths else b""

    async def remove(self, paths: Sequence[str]) -> None:
        """Remove these files."""
        if paths:
            await self.shell.said(REMOVE, self.folder, data=_listed(paths))

    def _which(self) -> list[str]:
        tests = [("-name", glob) for glob in self.rules.names] + [("-path", f"./{glob}") for glob in self.rules.paths]
        words = [word for test in tests for word in ("-o", *test)][1:]
        return ["(", *words, ")", "-prune", "-o", "-type", "f"]


def _is_plain(path: str) -> bool:
    return not path.startswith("/") and all(part not in ("", ".", "..") for part in path.split("/"))


def _listed(paths: Sequence[str]) -> bytes:
    return b"".join(f"./{path}".encode() + b"\0" for path in paths)


def _text(name: bytes) -> str:
    """A name as text; empty for one that is none."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        return ""


def _plain(name: bytes) -> bytes:
    """A name with its backslashes as sha256sum writes them."""
    return name.replace(rb"\\", b"\\")
