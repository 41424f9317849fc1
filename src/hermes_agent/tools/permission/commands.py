"""Permission checks that read shell commands; this module is imported when a call with a command is checked."""

from __future__ import annotations

import hashlib
import os.path
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from hermes_agent.core.effects import Capability
from hermes_agent.tools.danger.judging import judge, judge_input, judged, written
from hermes_agent.tools.danger.shell import SHELLS, WRAPPERS, Simple, Unreadable, is_known, read
from hermes_agent.tools.danger.verdict import Verdict, Where, named
from hermes_agent.tools.permission.requests import COMMAND, HANDLE, Request, data_of

SECRET_FILES = (
    r"(?i)(^|/)(\.env(\..*)?|.*\.env|[^/]*(config|settings|secrets?|credentials?|auth)[^/]*\.(ya?ml|toml|json|ini|cfg|conf)"
    r"|\.npmrc|\.pypirc|\.netrc|credentials|config)$"
)
UNRULED = (SHELLS | WRAPPERS) | named(
    "python python2 python3 perl ruby node nodejs deno bun php lua awk gawk mawk sed osascript Rscript tclsh eval"
    " source . su login chroot ssh scp sftp rsync curl wget http https xh httpie nc ncat netcat socat telnet ftp rclone"
    " mail sendmail npx uvx pipx bunx npm pnpm yarn uv pip pip3 poetry pdm hatch tox nox make just cargo go gradle mvn"
    " rake bundle docker podman nerdctl kubectl tmux screen script vim vi ed emacs git-shell crontab at find fd"
)
"""Programs of which no rule is made: their words say what runs, or send whatever they name."""


def verdict_on(request: Request, where: Where) -> Verdict:
    """The danger verdict on a call that runs a command or types into one."""
    if request.feeds:
        return judge_input(request.feeds, data_of(request), where)
    return judge(HANDLE.sub(r"handle_\1", request.arguments[COMMAND]), where)


def cover(globs: Sequence[str], command: str, where: Where, folder: str) -> bool:
    """Whether the globs match every command in it that needs approval."""
    with suppress(Unreadable, RecursionError):
        asking = [simple for simple in read(command, folder) if judged([simple], where).asks]
        return bool(asking) and all(_covers(globs, simple, where) for simple in asking)
    return False


def overwritten(request: Request) -> str:
    """The secrets file that a call would write to; empty if none."""
    command = request.arguments.get(COMMAND)
    paths: list[str] = list(request.facts.paths or ()) if Capability.FS_WRITE in request.needs else []
    if isinstance(command, str):
        try:
            paths = [path for simple in read(command) for path in written(simple)]
        except Unreadable:
            return "a file"
    return next((path for path in paths if re.search(SECRET_FILES, path)), "")


def programs_of(command: str, folder: str) -> list[str]:
    """Each simple command as text; empty if unreadable."""
    with suppress(Unreadable):
        return [" ".join(simple.words) for simple in read(command, folder)]
    return []


def words_of(command: str) -> list[str]:
    """The words of a command that is a single literal program call; empty for any other."""
    with suppress(Unreadable):
        match read(command):
            case [Simple(writes=(), stdin="") as one] if not one.variables and all(map(is_known, one.words)):
                return [] if re.search(r"[$`*?~{}<>&|;()\n\\]", command) else list(one.words)
    return []


def rule_of(command: str) -> str:
    """The rule that may be made of a command: its program with its first fixed words, and a star for the plain words
    behind them (no options, no `+x`, no `:x`). Empty where none is: the star would allow too much."""
    words = words_of(command)
    if (
        len(words) < 3
        or Path(words[0]).name in UNRULED
        or not all(re.fullmatch(r"[\w@/][\w@/.:=-]*", w) for w in words)
    ):
        return ""
    fixed = [words[0], *(word for word in words[1:3] if re.fullmatch(r"[a-zA-Z][\w-]*", word))][: len(words) - 1]
    return f"{' '.join(fixed)} *" if fixed[1:] == words[1 : len(fixed)] and len(fixed) > 1 else ""


def program_of(command: str, path: str) -> str:
    """Which program a command runs: its real path and the hash of its content; empty where there is none."""
    words = words_of(command)
    found = shutil.which(words[0], path=path or None) if words else None
    real = os.path.realpath(found) if found else ""
    return f"{real} {_hash(real, Path(real).stat().st_mtime_ns, Path(real).stat().st_size)}" if real else ""


@lru_cache(maxsize=100)
def _hash(path: str, changed: int, size: int) -> str:  # noqa: ARG001 - the key of the cache
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _covers(globs: Sequence[str], simple: Simple, where: Where) -> bool:
    inside = replace(where, folder=simple.folder)
    if simple.variables or any(map(inside.is_outside, simple.writes)):
        return False
    return any(fnmatchcase(" ".join(simple.words), glob) for glob in globs)
