"""Whether a call may run: hard block, the owner's deny list, capabilities, then what a person said or must say."""

from __future__ import annotations

import hashlib
import os.path
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol

import msgspec

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.tool import CallFacts, Question
from hermes_agent.tools.danger.judging import judge
from hermes_agent.tools.danger.verdict import Verdict, Where
from hermes_agent.tools.settings import ApprovalSettings
from hermes_agent.tools.syntax.reading import read
from hermes_agent.tools.syntax.simple import is_known
from hermes_agent.tools.syntax.tree import Unreadable

CHOICES = ("once", "session", "always", "deny")
COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A call that is about to run. `granted` is what this conversation may use; `attended` says whether a person is
    there to be asked; `folder` is where a command runs (the kept shell's, see `ShellTools.directory`), if not in the
    workspace."""

    tool: str
    needs: frozenset[Capability]
    facts: CallFacts
    arguments: Mapping[str, Any]
    session: str
    workspace: str
    folder: str = ""
    granted: frozenset[Capability] = frozenset(Capability)
    attended: bool = True


@dataclass(frozen=True, slots=True)
class Allowed:
    """The call may run."""


@dataclass(frozen=True, slots=True)
class Denied:
    """The call may not run; the reason is a sentence for the model and the person."""

    reason: str


@dataclass(frozen=True, slots=True)
class NeedsApproval:
    """The call may run when a person says so. `key` is the hash that an answer is bound to."""

    question: Question
    key: str


Decision = Allowed | Denied | NeedsApproval


class Remembered(Protocol):
    """- `has` and `add` survive the process;
    - an entry stands for exactly one tool, command and folder, never for more."""

    def has(self, key: str) -> bool: ...

    def add(self, key: str, *, tool: str, what: str, folder: str) -> None: ...


class Permission:
    """Decides about calls and remembers what people answered.

    `remembered` holds the answers "always"; those for a session are kept here, in memory. `writable` are folders
    besides the workspace where writing needs no question (the temporary folder).
    """

    def __init__(
        self, settings: ApprovalSettings, remembered: Remembered, *, writable: tuple[str, ...] = ("/tmp",)
    ) -> None:
        self._settings = settings
        self._remembered = remembered
        self._writable = writable
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
        key = binding(request)
        if not verdict.asks or self._settings.mode == "off" or self._is_remembered(key, request.session):
            return Allowed()
        reasons = "; ".join(verdict.asks)
        if not request.attended:
            return Denied(f"It needs a person's approval ({reasons}), and nobody is there to give it.")
        shown = what(request)
        text = f"May I run this? {reasons[:1].upper()}{reasons[1:]}.\n{shown}\nin {folder_of(request)}"
        return NeedsApproval(Question(text=text, choices=CHOICES, purpose="approval"), key)

    def remember(self, request: Request, answer: str) -> Allowed | Denied:
        """Take a person's answer: `once`, `session`, `always`, or anything else for no."""
        key = binding(request)
        match answer.strip().lower():
            case "once" | "yes" | "y" | "o":
                return Allowed()
            case "session" | "s":
                self._sessions.setdefault(request.session, set()).add(key)
                return Allowed()
            case "always" | "a":
                self._remembered.add(key, tool=request.tool, what=what(request), folder=folder_of(request))
                return Allowed()
            case "deny" | "no" | "n" | "d" | "":
                return Denied("The person said no.")
            case words:
                return Denied(f"The person did not agree and said: {words}")

    def _verdict(self, request: Request) -> Verdict:
        where = Where(folder=folder_of(request), writable=(request.workspace, *self._writable))
        command = request.arguments.get(COMMAND)
        if Capability.EXEC in request.needs and isinstance(command, str):
            return judge(command, where)
        if request.facts.effect is Effect.READS or Capability.FS_WRITE not in request.needs:
            return Verdict()
        outside = [path for path in request.facts.paths or () if where.is_outside(path)]
        return Verdict(asks=tuple(f"it writes outside the workspace ({path})" for path in outside))

    def _is_remembered(self, key: str, session: str) -> bool:
        return key in self._sessions.get(session, ()) or self._remembered.has(key)

    def _denied_by(self, request: Request) -> str:
        """The glob of the deny list that this call matches. A glob is matched against the whole command, each simple
        command in it, `tool:what`, and the tool's name."""
        paths = request.facts.paths or ()
        names = [request.tool, f"{request.tool}:{what(request)}", *(f"{request.tool}:{path}" for path in paths)]
        command = request.arguments.get(COMMAND)
        if isinstance(command, str):
            names.append(" ".join(command.split()))
            with suppress(Unreadable):
                names += [" ".join(simple.words) for simple in read(command, folder_of(request)).simples]
        return next((glob for glob in self._settings.deny if any(fnmatchcase(name, glob) for name in names)), "")


def what(request: Request) -> str:
    """The call in words a person can judge: the command, or the tool with what it is about."""
    command = request.arguments.get(COMMAND)
    return command if isinstance(command, str) else request.facts.summary


def folder_of(request: Request) -> str:
    """Where the call works: the folder it names, otherwise the workspace."""
    base = request.folder or request.workspace
    named = request.arguments.get("workdir")
    return os.path.normpath(Path(base) / named) if isinstance(named, str) and named else base


def binding(request: Request) -> str:
    """The hash that an approval is bound to: tool, command (or every argument) and folder. Another command, folder or
    tool is another hash; of a single program, spaces and quotes between its words are not."""
    command = request.arguments.get(COMMAND)
    about: object = dict(sorted(request.arguments.items()))
    if isinstance(command, str):
        about = _words_of(command) or command.strip()
    text = msgspec.json.encode([request.tool, about, folder_of(request)], order="sorted", enc_hook=repr)
    return hashlib.sha256(text).hexdigest()


def _words_of(command: str) -> list[str]:
    """The words of a command that is one program with words that are written out; empty for any other."""
    try:
        simples = read(command).simples
    except Unreadable:
        return []
    if len(simples) != 1 or simples[0].writes or simples[0].variables or not all(map(is_known, simples[0].words)):
        return []
    plain = not re.search(r"[$`*?~{}<>&|;()\n\\]", command)
    return list(simples[0].words) if plain and not simples[0].prefixes else []
