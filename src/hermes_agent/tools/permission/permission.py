"""Decides whether a call may run: hard block, deny list, capabilities, then what a person said or must say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Protocol

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.tool import Question
from hermes_agent.host.redaction import MARKER
from hermes_agent.tools.danger.judging import judge, judge_input, judged
from hermes_agent.tools.danger.paths import written
from hermes_agent.tools.danger.verdict import Verdict, Where
from hermes_agent.tools.handles import HANDLE
from hermes_agent.tools.permission.requests import (
    CODE,
    COMMAND,
    Allowed,
    Decision,
    Denied,
    NeedsApproval,
    Request,
    binding,
    data_of,
    folder_of,
    what,
)
from hermes_agent.tools.settings import ApprovalSettings
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


SECRET_FILES = re.compile(
    r"(^|/)(\.env(\..*)?|.*\.env|[^/]*(config|settings|secrets?|credentials?|auth)[^/]*\.(ya?ml|toml|json|ini|cfg|conf)"
    r"|\.npmrc|\.pypirc|\.netrc|credentials|config)$",
    re.IGNORECASE,
)


def overwrites_a_secret(request: Request) -> str:
    """The file into which a call would write a mark in place of a secret; empty where it would not."""
    if request.facts.effect is Effect.READS or not MARKER.search(_text(request.arguments)):
        return ""
    command = request.arguments.get(COMMAND)
    paths: list[str] = list(request.facts.paths or ()) if Capability.FS_WRITE in request.needs else []
    if isinstance(command, str):
        try:
            paths = [path for simple in read(command).simples for path in written(simple)]
        except Unreadable:
            return "a file"
    return next((path for path in paths if SECRET_FILES.search(path)), "")


def _text(value: object) -> str:
    match value:
        case str():
            return value
        case Mapping():
            return " ".join(map(_text, value.values()))
        case list() | tuple():
            return " ".join(map(_text, value))
        case _:
            return ""


CHOICES = ("once", "session", "always", "deny")


class Remembered(Protocol):
    """- `has` and `add` survive the process;
    - an entry stands for exactly one tool, command and folder, never for more."""

    def has(self, key: str) -> bool: ...

    async def add(self, key: str, *, tool: str, what: str, folder: str) -> None: ...


class Permission:
    """Decides about calls and remembers what people answered.

    `remembered` holds the answers "always"; those for a session are kept here, in memory. `writable` are folders
    besides the workspace where writing needs no question (the temporary folder); `source` is the program's own, where
    it always does unless the owner opened it. `allowed` are globs of calls that the person of this process allows, see
    `allows`.
    """

    def __init__(
        self,
        settings: ApprovalSettings,
        remembered: Remembered,
        *,
        writable: tuple[str, ...] = ("/tmp",),
        allowed: Sequence[str] = (),
        source: str = "",
    ) -> None:
        self._settings = settings
        self._remembered = remembered
        self._writable = writable
        self._allowed = allowed
        self._source = "" if settings.own_source else source
        self._sessions: dict[str, set[str]] = {}

    def decide(self, request: Request) -> Decision:
        """Judge a call. Reads a small file at most; nothing is changed."""
        verdict = self._verdict(request)
        if verdict.blocked:
            return Denied(f"Never allowed here: {verdict.blocked}.")
        if glob := self._denied_by(request):
            return Denied(f"The owner's deny list forbids it (`{glob}`).")
        lacking = sorted(request.needs - request.granted)
        if lacking:
            return Denied(f"{request.tool} needs `{lacking[0]}`, which is not granted in this conversation.")
        unasked = self._settings.mode == "off" or (request.unasked and request.attended)
        if not verdict.asks or unasked or self._is_allowed(request):
            return Allowed()
        reasons = "; ".join(verdict.asks)
        if not request.attended:
            return Denied(f"It needs a person's approval ({reasons}), and nobody is there to give it.", unasked=True)
        text = f"May I run this? {reasons[:1].upper()}{reasons[1:]}.\n{what(request)}\nin {folder_of(request)}"
        key = binding(request)
        question = Question(text=text, about=key, choices=CHOICES, purpose="approval")
        return NeedsApproval(question, key, verdict.asks)

    async def remember(self, request: Request, answer: str) -> Allowed | Denied:
        """Take a person's answer: `once`, `session`, `always`, or anything else for no."""
        key = binding(request)
        said = answer.strip()
        match said.lower():
            case "once" | "yes" | "y" | "o":
                return Allowed()
            case "session" | "s":
                self._sessions.setdefault(request.session, set()).add(key)
                return Allowed()
            case "always" | "a":
                await self._remembered.add(key, tool=request.tool, what=what(request), folder=folder_of(request))
                return Allowed()
            case "deny" | "no" | "n" | "d" | "":
                return Denied("The person said no.")
            case _:
                end = "" if said.endswith((".", "!", "?")) else "."
                return Denied(f"The person did not agree and said: {said}{end}")

    def _verdict(self, request: Request) -> Verdict:
        if path := overwrites_a_secret(request):
            return Verdict(blocked=f"it would write the mark of a hidden secret into {path}")
        where = self._where(request)
        command = request.arguments.get(COMMAND)
        if Capability.EXEC in request.needs and isinstance(command, str):
            return judge(HANDLE.sub(r"handle_\1", command), where)
        if request.feeds:
            return judge_input(request.feeds, data_of(request), where)
        if Capability.EXEC in request.needs and isinstance(request.arguments.get(CODE), str):
            return Verdict(asks=("it runs a program, and what a program does cannot be read off it",))
        if request.facts.effect is Effect.READS or Capability.FS_WRITE not in request.needs:
            return Verdict()
        outside = [path for path in request.facts.paths or () if where.is_outside(path)]
        return Verdict(asks=tuple(f"it writes outside the workspace ({path})" for path in outside))

    def _where(self, request: Request) -> Where:
        return Where(folder=folder_of(request), writable=(request.workspace, *self._writable), closed=self._source)

    def _is_allowed(self, request: Request) -> bool:
        """Whether a person said yes before."""
        key = binding(request)
        remembered = key in self._sessions.get(request.session, ()) or self._remembered.has(key)
        return remembered or allows(self._allowed, request, self._where(request))

    def _denied_by(self, request: Request) -> str:
        """The glob of the deny list that this call matches. A glob is matched against the whole command, each simple
        command in it, `tool:what`, and the tool's name."""
        paths = request.facts.paths or ()
        names = [request.tool, f"{request.tool}:{what(request)}", *(f"{request.tool}:{path}" for path in paths)]
        command = request.arguments.get(COMMAND) or data_of(request)
        if self._settings.deny and isinstance(command, str):
            names.append(" ".join(command.split()))
            with suppress(Unreadable):
                names += [" ".join(simple.words) for simple in read(command, folder_of(request)).simples]
        return next((glob for glob in self._settings.deny if any(fnmatchcase(name, glob) for name in names)), "")
