"""Permission policy: decides whether a call may run by hard block, deny list, capabilities, then approvals."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Protocol

from hermes_agent.core.chat import PEOPLE, own_name
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.records import texts_in
from hermes_agent.core.tool import Question
from hermes_agent.host.secrets import MARKER
from hermes_agent.sandbox.walls import is_below
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
    effect_of,
    folder_of,
    plain,
    rule_key,
    what,
)
from hermes_agent.tools.settings import ApprovalSettings
from hermes_agent.tools.starting import exec_name
from hermes_agent.tools.surfaces import CHILD, OPEN_WALLS

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
RULED = ("once", "session", "always", "rule", "deny")
WRITABLE = ("/tmp",)  # besides the workspace, without approval
OUTSIDE = "it runs outside the wall"


class Remembered(Protocol):
    """Store of permanent approvals, kept across processes. An entry's key is the hash from `binding()`: principal,
    tool, command or arguments, folder and environment; or from `rule_key()`. `program` gives the program that an entry
    is bound to, empty if to none; None if there is no such entry. `knows`: whether an entry is for one of these calls
    or rules, as people read them."""

    def knows(self, said: Set[str]) -> bool: ...

    def program(self, key: str) -> str | None: ...

    async def add(self, key: str, *, tool: str, what: str, folder: str, program: str = "") -> None: ...


class Permission:
    """Permission policy of a process: decides whether a tool call may run, and remembers the answers of people.

    `remembered` stores answers "always"; answers for a session are kept in memory. `allowed`: globs of calls allowed
    for this process, see `allows`. `bare`: without a wall everything but plain reading needs approval. `largest`: bytes
    of a file that checkpoints hold. `guard` knows which paths commands are shown (a tool that touches another needs
    approval), and the program's own source, where every change needs it.
    """

    def __init__(
        self,
        settings: ApprovalSettings,
        remembered: Remembered,
        *,
        allowed: Sequence[str] = (),
        bare: bool = False,
        largest: int = 10 << 20,
        guard: Guard | None = None,
    ) -> None:
        self._settings = settings
        self._remembered = remembered
        self._allowed = allowed
        self._bare, self._largest = bare, largest
        self._guard = guard
        self._sessions: dict[str, set[str]] = {}

    def decide(self, request: Request) -> Decision:
        """Decide about a call. Reads at most small files, and a program that a rule is bound to; changes nothing."""
        verdict, inside = self._verdict(request), request
        if refused := self._refused(request, verdict):
            return Denied(refused)
        request = self._outward(request, verdict)
        leaves = bool(request.wall) and request.outside
        reasons = (*verdict.asks, *([OUTSIDE] if leaves else []))
        unasked = self._settings.mode == "off" or (request.unasked and request.attended)
        if inside.wall and not inside.confined and self._is_remembered(replace(inside, outside=True)):
            return Allowed(outside=True)
        if not reasons or unasked or self._is_allowed(request):
            return Allowed(outside=leaves)
        told = "; ".join(reasons)
        if not request.attended:
            return Denied(f"It needs a person's approval ({told}), and no person is here.", unasked=True)
        return NeedsApproval(self._question(request, told), binding(request), reasons)

    def _refused(self, request: Request, verdict: Verdict) -> str:
        """Why nobody is asked about the call, because it never runs; empty if it may."""
        glob, lacking = self._denied_by(request), self._lacking(request)
        if verdict.blocked:
            return f"Never allowed here: {verdict.blocked}."
        if glob:
            return f"The owner's deny list forbids it (`{glob}`)."
        return f"{request.tool} needs {lacking}." if lacking else ""

    async def remember(self, request: Request, answer: str) -> Allowed | Denied:
        """Apply a person's answer: `once`, `session`, `always`, `rule`, or anything else for no."""
        request = self._outward(request, self._verdict(request))
        key, allowed = binding(request), Allowed(outside=bool(request.wall) and request.outside)
        said, rule = answer.strip(), _rule_of(request)
        match said.lower():
            case "once" | "yes" | "y" | "o":
                pass
            case "session" | "s":
                self._sessions.setdefault(request.session, set()).update((key, plain(what(request))))
            case "always" | "a":
                await self._add(key, request, what(request), folder_of(request), ruled=request.outside)
            case "rule" | "r":
                if not rule:
                    return Denied("No rule can be made of this call, because it would allow too much: say always.")
                await self._add(rule_key(request, rule), request, rule, request.workspace, ruled=True)
            case "deny" | "no" | "n" | "d" | "":
                return Denied("The person said no.")
            case _:
                end = "" if said.endswith((".", "!", "?")) else "."
                return Denied(f"The person did not agree and said: {said}{end}")
        return allowed

    async def _add(self, key: str, request: Request, said: str, folder: str, *, ruled: bool) -> None:
        program = _program_of(request) if ruled else ""
        await self._remembered.add(key, tool=request.tool, what=said, folder=folder, program=program)

    def _question(self, request: Request, reasons: str) -> Question:
        leaves, rule = bool(request.wall) and request.outside, _rule_of(request)
        lines = [f"May I run this{' outside the wall' if leaves else ''}? {reasons[:1].upper()}{reasons[1:]}."]
        lines += [what(request), f"in {folder_of(request)}"]
        lines += [f"The wall stopped it before: {request.stopped}."] if leaves and request.stopped else []
        lines += [f"rule: `{rule}` in this workspace, with any plain words for the star"] if rule else []
        choices = RULED if rule else CHOICES
        about, bound = effect_of(request), binding(request)
        text = "\n".join(lines)
        return Question(text=text, about=about, circumstances=bound, choices=choices, purpose="approval")

    def _outward(self, request: Request, verdict: Verdict) -> Request:
        """The request as it is asked about: what is of no use inside a wall runs outside."""
        leaves = (request.outside or verdict.leaves) and not request.confined
        return replace(request, outside=leaves) if request.wall else request

    def _verdict(self, request: Request) -> Verdict:
        marked = request.facts.effect is not Effect.READS and MARKER.search(" ".join(texts_in(request.arguments)))
        if marked and (path := commands().overwritten(request)):
            return Verdict(blocked=f"it would write the mark of a hidden secret into {path}")
        where = self._where(request)
        runs = Capability.EXEC in request.needs and isinstance(request.arguments.get(COMMAND), str)
        if runs or request.feeds:
            verdict: Verdict = commands().verdict_on(request, where)
            return verdict
        if Capability.EXEC in request.needs and isinstance(request.arguments.get(CODE), str) and not request.wall:
            return Verdict(asks=("it runs a program, and what a program does cannot be read off it",))
        writes = request.facts.effect is not Effect.READS and Capability.FS_WRITE in request.needs
        outside = [path for path in request.facts.paths or () if self._is_outside(path, request, writes=writes)]
        verb = "writes" if writes else "reads"
        return Verdict(asks=tuple(f"it {verb} outside the workspace ({path})" for path in outside))

    def _lacking(self, request: Request) -> str:
        """What a call needs and has not; empty for nothing."""
        if lacking := sorted(request.needs - request.granted):
            return f"`{lacking[0]}`, which is not granted in this conversation"
        reached = self._reached(request) if request.confined else ""
        return f"{reached}, and only what the owner says reaches that" if reached else ""

    def _reached(self, request: Request) -> str:
        """What a call reaches that is not its workspace's, nor shown to every command; empty for nothing."""
        acts = not request.needs.isdisjoint((Capability.EXEC, Capability.FS_READ, Capability.FS_WRITE))
        if acts and PEOPLE not in request.workspace and not _is_child(request):
            return "the workspace of the owner (`/new` begins a conversation that has its own)"
        if Capability.EXEC in request.needs and (request.outside or request.wall in OPEN_WALLS):
            return "a way out of the wall" if request.outside else "a wall, which is not here"
        writes = request.facts.effect is not Effect.READS and Capability.FS_WRITE in request.needs
        paths = request.facts.paths or ()
        return next(
            (path for path in paths if self._asks(path, request, writes=writes) or self._is_anothers(path, request)), ""
        )

    def _is_anothers(self, path: str, request: Request) -> bool:
        """Whether it is what another conversation left in the cache: an output, a result, an input."""
        own = exec_name(request.session), own_name(request.workspace)
        return self._guard is not None and not _is_child(request) and self._guard.is_anothers(path, *own)

    def _asks(self, path: str, request: Request, *, writes: bool) -> bool:
        return self._guard is not None and self._guard.asks(path, request.workspace, writes=writes)

    def _is_outside(self, path: str, request: Request, *, writes: bool) -> bool:
        """Whether a tool's path is not among what commands are shown; without walls, whether it writes outside."""
        if any(is_below(path, each) for each in self._folders(request)):
            return False
        if self._guard is not None and self._guard.walled:
            return self._asks(path, request, writes=writes)
        return writes and self._where(request).is_outside(path)

    def _folders(self, request: Request) -> Sequence[str]:
        return self._guard.folders(request.session) if self._guard is not None else ()

    def _where(self, request: Request) -> Where:
        walled = bool(request.wall) and not request.outside
        writable = (request.workspace, *WRITABLE, *self._folders(request))
        bare = self._bare and not request.wall
        return Where(
            folder=folder_of(request),
            writable=writable,
            closed=str(self._guard.source or "") if self._guard else "",
            walled=walled,
            bare=bare,
            largest=self._largest,
        )

    def _is_allowed(self, request: Request) -> bool:
        return self._is_remembered(request) or allows(self._allowed, request, self._where(request))

    def _is_remembered(self, request: Request) -> bool:
        """Whether a person approved the call before, for good by a program that is still the same."""
        session, rule = self._sessions.get(request.session, set()), _rule_of(request)
        said = {plain(what(request)), plain(rule)} - {""}
        if not said & session and not self._remembered.knows(said):
            return False  # Without looking for what an answer is bound to.
        key = binding(request)
        if key in session:
            return True
        found = [self._remembered.program(each) for each in (key, *([rule_key(request, rule)] if rule else []))]
        return any(program == "" or (program and program == _program_of(request)) for program in found)

    def _denied_by(self, request: Request) -> str:
        """The deny-list glob that matches this call; empty if none. Globs match the whole command, each simple
        command, `tool:what` and the tool's name."""
        paths = request.facts.paths or ()
        names = [request.tool, f"{request.tool}:{what(request)}", *(f"{request.tool}:{path}" for path in paths)]
        command = request.arguments.get(COMMAND) or data_of(request)
        if self._settings.deny and isinstance(command, str):
            names += [" ".join(command.split()), *commands().programs_of(command, folder_of(request))]
        return next((glob for glob in self._settings.deny if any(fnmatchcase(name, glob) for name in names)), "")


def _is_child(request: Request) -> bool:
    """Whether a command of the agent speaks."""
    return request.principal.startswith(f"{CHILD}:")


def _rule_of(request: Request) -> str:
    command = request.arguments.get(COMMAND)
    return str(commands().rule_of(command)) if isinstance(command, str) and not request.feeds else ""


def _program_of(request: Request) -> str:
    """The program that a command runs, as a rule is bound to it."""
    command = request.arguments.get(COMMAND)
    return str(commands().program_of(command, request.search())) if isinstance(command, str) else ""
