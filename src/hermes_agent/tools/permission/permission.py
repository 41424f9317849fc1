"""Permission policy: decides whether a call may run by hard block, deny list, capabilities, then approvals."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Protocol

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.inbound import PEOPLE
from hermes_agent.core.tool import Question
from hermes_agent.host.secrets import MARKER
from hermes_agent.tools.danger.verdict import Verdict, Where
from hermes_agent.tools.files.guard import Guard
from hermes_agent.tools.permission.requests import (
    CODE,
    COMMAND,
    Allowed,
    Decision,
    Denied,
    NeedsApproval,
    Request,
    binding,
    commands,
    data_of,
    folder_of,
    texts_in,
    what,
)
from hermes_agent.tools.settings import ApprovalSettings
from hermes_agent.tools.surfaces import CHILD

EVERYTHING = "*"


def allows(globs: Sequence[str], request: Request, where: Where) -> bool:
    """Whether the allow globs cover everything in this call that needs approval.

    A glob may be the exact call as an approval shows it; or match each command that needs approval; or `TOOL:WHAT`,
    or `TOOL:PATH` for every path; or the tool's name. Prefixes of a command (`sudo`, variables) and writes outside
    the workspace are covered only by the exact call.
    """
    if not globs:
        return False
    if EVERYTHING in globs or " ".join(what(request).split()) in {" ".join(glob.split()) for glob in globs}:
        return True
    if any(fnmatchcase(name, glob) for name in (request.tool, f"{request.tool}:{what(request)}") for glob in globs):
        return True
    command = request.arguments.get(COMMAND)
    if Capability.EXEC in request.needs and isinstance(command, str):
        return bool(commands().cover(globs, command, where, folder_of(request)))
    paths = request.facts.paths or ()
    outside = [path for path in paths if where.is_outside(path)] or paths
    return bool(outside) and all(any(fnmatchcase(f"{request.tool}:{path}", glob) for glob in globs) for path in outside)


CHOICES = ("once", "session", "always", "deny")


class Remembered(Protocol):
    """Store of permanent approvals, kept across processes. An entry's key is the hash from `binding()`: principal,
    tool, command or arguments, folder and environment."""

    def has(self, key: str) -> bool: ...

    async def add(self, key: str, *, tool: str, what: str, folder: str) -> None: ...


class Permission:
    """Permission policy of a process: decides whether a tool call may run, and remembers the answers of people.

    `remembered` stores answers "always"; answers for a session are kept in memory. `writable`: folders besides the
    workspace that need no approval for writes (the temporary folder). `source`: the program's own source, where changes
    always need approval unless the owner opened it. `allowed`: globs of calls allowed for this process, see `allows`.
    `guard` knows which paths commands are shown: about others of the file tools it is asked.
    """

    def __init__(
        self,
        settings: ApprovalSettings,
        remembered: Remembered,
        *,
        writable: tuple[str, ...] = ("/tmp",),
        allowed: Sequence[str] = (),
        source: str = "",
        guard: Guard | None = None,
    ) -> None:
        self._settings = settings
        self._remembered = remembered
        self._writable = writable
        self._allowed = allowed
        self._source = "" if settings.own_source else source
        self._guard = guard
        self._sessions: dict[str, set[str]] = {}

    def decide(self, request: Request) -> Decision:
        """Decide about a call. Reads at most a small file; changes nothing."""
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
            return Denied(f"It needs a person's approval ({reasons}), and no person is here.", unasked=True)
        text = f"May I run this? {reasons[:1].upper()}{reasons[1:]}.\n{what(request)}\nin {folder_of(request)}"
        key = binding(request)
        question = Question(text=text, about=key, choices=CHOICES, purpose="approval")
        return NeedsApproval(question, key, verdict.asks)

    async def remember(self, request: Request, answer: str) -> Allowed | Denied:
        """Apply a person's answer: `once`, `session`, `always`, or anything else for no."""
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
        marked = request.facts.effect is not Effect.READS and MARKER.search(" ".join(texts_in(request.arguments)))
        if marked and (path := commands().overwritten(request)):
            return Verdict(blocked=f"it would write the mark of a hidden secret into {path}")
        if request.confined and (reached := self._reached(request)):
            return Verdict(blocked=f"it needs {reached}, and only what the owner says reaches that")
        where = self._where(request)
        runs = Capability.EXEC in request.needs and isinstance(request.arguments.get(COMMAND), str)
        if runs or request.feeds:
            verdict: Verdict = commands().verdict_on(request, where)
            return verdict
        if Capability.EXEC in request.needs and isinstance(request.arguments.get(CODE), str):
            return Verdict(asks=("it runs a program, and what a program does cannot be read off it",))
        writes = request.facts.effect is not Effect.READS and Capability.FS_WRITE in request.needs
        outside = [path for path in request.facts.paths or () if self._is_outside(path, request, writes=writes)]
        verb = "writes" if writes else "reads"
        return Verdict(asks=tuple(f"it {verb} outside the workspace ({path})" for path in outside))

    def _reached(self, request: Request) -> str:
        """What a call reaches that is not its workspace's, nor shown to every command; empty for nothing."""
        acts = not request.needs.isdisjoint((Capability.EXEC, Capability.FS_READ, Capability.FS_WRITE))
        if acts and PEOPLE not in request.workspace and not request.principal.startswith(f"{CHILD}:"):
            return "the workspace of the owner (`/new` begins a conversation that has its own)"
        if request.arguments.get("outside"):
            return "a way out of the wall"
        writes = request.facts.effect is not Effect.READS and Capability.FS_WRITE in request.needs
        beyond = (path for path in request.facts.paths or () if self._asks(path, request, writes=writes))
        return next(beyond, "")

    def _asks(self, path: str, request: Request, *, writes: bool) -> bool:
        return self._guard is not None and self._guard.asks(path, request.workspace, writes=writes)

    def _is_outside(self, path: str, request: Request, *, writes: bool) -> bool:
        """Whether a tool's path is not among what commands are shown; without walls, whether it writes outside."""
        if self._guard is not None and self._guard.walled:
            return self._asks(path, request, writes=writes)
        return writes and self._where(request).is_outside(path)

    def _where(self, request: Request) -> Where:
        return Where(folder=folder_of(request), writable=(request.workspace, *self._writable), closed=self._source)

    def _is_allowed(self, request: Request) -> bool:
        """Whether the call was approved before."""
        key = binding(request)
        remembered = key in self._sessions.get(request.session, ()) or self._remembered.has(key)
        return remembered or allows(self._allowed, request, self._where(request))

    def _denied_by(self, request: Request) -> str:
        """The deny-list glob that matches this call; empty if none. Globs match the whole command, each simple
        command, `tool:what` and the tool's name."""
        paths = request.facts.paths or ()
        names = [request.tool, f"{request.tool}:{what(request)}", *(f"{request.tool}:{path}" for path in paths)]
        command = request.arguments.get(COMMAND) or data_of(request)
        if self._settings.deny and isinstance(command, str):
            names += [" ".join(command.split()), *commands().programs_of(command, folder_of(request))]
        return next((glob for glob in self._settings.deny if any(fnmatchcase(name, glob) for name in names)), "")
