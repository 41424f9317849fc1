"""Permission checks that parse shell commands; this module is imported when a call with a command is checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase

from hermes_agent.core.effects import Capability
from hermes_agent.tools.danger.judging import judge, judge_input, judged
from hermes_agent.tools.danger.paths import written
from hermes_agent.tools.danger.verdict import Verdict, Where
from hermes_agent.tools.permission.requests import COMMAND, HANDLE, Request, data_of
from hermes_agent.tools.syntax.reading import Reading, read
from hermes_agent.tools.syntax.simple import Simple, is_known
from hermes_agent.tools.syntax.words import Unreadable

SECRET_FILES = (
    r"(?i)(^|/)(\.env(\..*)?|.*\.env|[^/]*(config|settings|secrets?|credentials?|auth)[^/]*\.(ya?ml|toml|json|ini|cfg|conf)"
    r"|\.npmrc|\.pypirc|\.netrc|credentials|config)$"
)


def verdict_on(request: Request, where: Where) -> Verdict:
    """The danger verdict on a call that runs a command or types into one."""
    if request.feeds:
        return judge_input(request.feeds, data_of(request), where)
    return judge(HANDLE.sub(r"handle_\1", request.arguments[COMMAND]), where)


def cover(globs: Sequence[str], command: str, where: Where, folder: str) -> bool:
    """Whether the globs match every command in it that needs approval."""
    with suppress(Unreadable, RecursionError):
        reading = read(command, folder)
        asking = [simple for simple in reading.simples if judged(Reading(simples=(simple,)), where).asks]
        return not reading.is_endless and bool(asking) and all(_covers(globs, simple, where) for simple in asking)
    return False


def overwritten(request: Request) -> str:
    """The secrets file that a call would write to; empty if none."""
    command = request.arguments.get(COMMAND)
    paths: list[str] = list(request.facts.paths or ()) if Capability.FS_WRITE in request.needs else []
    if isinstance(command, str):
        try:
            paths = [path for simple in read(command).simples for path in written(simple)]
        except Unreadable:
            return "a file"
    return next((path for path in paths if re.search(SECRET_FILES, path)), "")


def programs_of(command: str, folder: str) -> list[str]:
    """Each simple command as text; empty if unparsable."""
    with suppress(Unreadable):
        return [" ".join(simple.words) for simple in read(command, folder).simples]
    return []


def words_of(command: str) -> list[str]:
    """The words of a command that is a single literal program call; empty for any other."""
    with suppress(Unreadable):
        match read(command).simples:
            case (Simple(writes=(), prefixes=()) as one,) if not one.variables and all(map(is_known, one.words)):
                return [] if re.search(r"[$`*?~{}<>&|;()\n\\]", command) else list(one.words)
    return []


def _covers(globs: Sequence[str], simple: Simple, where: Where) -> bool:
    inside = replace(where, folder=simple.folder)
    if simple.prefixes or simple.variables or any(map(inside.is_outside, simple.writes)):
        return False
    return any(fnmatchcase(" ".join(simple.words), glob) for glob in globs)
