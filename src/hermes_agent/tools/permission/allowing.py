"""What a person allows for one call of the program (`--allow GLOB`): which calls a glob is about."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase

from hermes_agent.core.effects import Capability
from hermes_agent.tools.danger.judging import judged
from hermes_agent.tools.danger.verdict import Where
from hermes_agent.tools.permission.requests import COMMAND, Request, folder_of, what
from hermes_agent.tools.syntax.reading import Reading, read
from hermes_agent.tools.syntax.simple import Simple
from hermes_agent.tools.syntax.tree import Unreadable

EVERYTHING = "*"


def allows(globs: Sequence[str], request: Request, where: Where) -> bool:
    """Whether the globs cover everything that this call would be asked about.

    A glob is the whole call as an approval shows it, word for word; or it matches a command, of several in one call
    each that asks; or `TOOL:WHAT` or `TOOL:PATH`, of several paths each; or the tool's name. What a command sets
    before it (`sudo`, variables) and where it writes outside the workspace is covered by the whole call alone.
    """
    if not globs:
        return False
    if EVERYTHING in globs or " ".join(what(request).split()) in {" ".join(glob.split()) for glob in globs}:
        return True
    if any(fnmatchcase(name, glob) for name in (request.tool, f"{request.tool}:{what(request)}") for glob in globs):
        return True
    command = request.arguments.get(COMMAND)
    if Capability.EXEC in request.needs and isinstance(command, str):
        return _commands(globs, command, where, folder_of(request))
    paths = request.facts.paths or ()
    outside = [path for path in paths if where.is_outside(path)] or paths
    return bool(outside) and all(any(fnmatchcase(f"{request.tool}:{path}", glob) for glob in globs) for path in outside)


def _commands(globs: Sequence[str], command: str, where: Where, folder: str) -> bool:
    with suppress(Unreadable, RecursionError):
        reading = read(command, folder)
        asking = [simple for simple in reading.simples if judged(Reading(simples=(simple,)), where).asks]
        return not reading.is_endless and bool(asking) and all(_one(globs, simple, where) for simple in asking)
    return False


def _one(globs: Sequence[str], simple: Simple, where: Where) -> bool:
    inside = replace(where, folder=simple.folder)
    if simple.prefixes or simple.variables or any(map(inside.is_outside, simple.writes)):
        return False
    return any(fnmatchcase(" ".join(simple.words), glob) for glob in globs)
