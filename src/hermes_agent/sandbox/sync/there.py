"""The files of a folder in a place that is reached by a shell: found, sent, fetched and removed there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.sync.here import MARKER, Found, Rules, is_too_much

# What each needs: find, stat, xargs and tar, of GNU or busybox (1.34 and later).
WHICH = f"$(head -c 64 {MARKER} 2>/dev/null):$(stat -c '%i %z' {MARKER} 2>/dev/null)"
# What is refused anyway is not listed: that may be the whole machine.
SCAN = f"""mkdir -p -- "$1" 2>/dev/null
cd -P -- "$1" 2>/dev/null || exit 0
shift
real=$(pwd -P) home=$(cd && pwd -P)
printf '%s\\0' "$real" "$home" "{WHICH}"
case $home/ in "${{real%/}}"/*) ;; *) case $real in
/*/*) find . "$@" -exec stat -c '%f %s %Y %y %z %i %n//' {{}} + 2>/dev/null
esac esac
printf '\\0%s' "$?\""""
MARK = f'cd -P -- "$1" && set -C && printf %s "$2" 2>/dev/null >{MARKER}; :'
# What reads or changes files does so in the very folder that was looked at.
SAME = f"""cd -P -- "$1" 2>/dev/null && [ "{WHICH}" = "$2" ] || {{ echo it is gone, or another one >&2; exit 1; }}
"""
SEND = f"{SAME}exec tar -xof -"
FETCH = f"{SAME}xargs -0 tar -cf - 2>/dev/null; :"
REMOVE = f"{SAME}xargs -0 rm -f"
_ROW = re.compile(r"(([0-9a-f]+) (\d+) [ -.0-~]+) \./(.+)", re.DOTALL)


class Shell(Protocol):
    """- `said` gives what a script, run by `sh` there with these arguments and input, wrote; raises `PlaceFailed` with
    its words where it failed, `Unreachable` where there was no answer."""

    async def said(self, script: str, *arguments: str, data: bytes = b"") -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class There:
    """One folder there. `which` is the very folder: the id in its marker file, with that file's inode and last change,
    which no copy of the folder has. A call for a folder that is another one by then raises `PlaceFailed`."""

    shell: Shell
    folder: str
    rules: Rules

    async def scan(self) -> Found:
        """Which folder it is (empty: one without a marker, or none that can be made), and its files. Raises
        `PlaceFailed` for one that is more than a project's."""
        tests = [("-name", glob) for glob in self.rules.names] + [("-path", f"./{glob}") for glob in self.rules.paths]
        prune = [word for test in tests for word in ("-o", *test)][1:]
        chosen = ("(", *prune, ")", "-prune", "-o", "(", "-type", "f", "-o", "-type", "l", ")")
        out = await self.shell.said(SCAN, self.folder, *chosen)
        if not out:
            return Found(rules=self.rules)
        try:
            real, home, which, rows, code = map(_text, out.split(b"\0"))
        except ValueError as error:
            raise PlaceFailed(f"The list of files in {self.folder} there is cut short.") from error
        if is_too_much(real, home):
            raise PlaceFailed(
                f"{self.folder} there is {real}, which is too much to copy to.",
                hint="Set `terminal.ssh.folder` to a folder for projects, or `terminal.ssh.sync: false`.",
            )
        found = Found(
            rules=self.rules, which=which if which.isascii() and which[0] != ":" else "", is_whole=code == "0"
        )
        for row in map(_ROW.fullmatch, rows.split("//\n")):
            if row and not {"", ".", ".."} & set(row[4].split("/")) and not self.rules.leaves_out(row[4]):
                found.add(row[4], int(row[2], 16), int(row[3]), row[1])
        return found

    async def mark(self, marker: str) -> None:
        """Give the folder an id where it has none."""
        await self.shell.said(MARK, self.folder, marker)

    async def send(self, which: str, archive: bytes) -> None:
        """Put the files of an archive there."""
        await self.shell.said(SEND, self.folder, which, data=archive)

    async def fetch(self, which: str, paths: Sequence[str]) -> bytes:
        """An archive of those of these files that can be read."""
        return await self.shell.said(FETCH, self.folder, which, data=_listed(paths))

    async def remove(self, which: str, paths: Sequence[str]) -> None:
        """Remove these files."""
        await self.shell.said(REMOVE, self.folder, which, data=_listed(paths))


def _listed(paths: Sequence[str]) -> bytes:
    return b"".join(f"./{path}".encode() + b"\0" for path in paths)


def _text(name: bytes) -> str:
    return name.decode(errors="surrogateescape")
