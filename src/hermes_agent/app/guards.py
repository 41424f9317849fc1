"""Hooks around every tool call: permission, loop detection, truncation of large results, context files of subfolders,
and checkpoints before a turn changes files."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import cache, partial
from pathlib import Path
from typing import Protocol

from hermes_agent.agent.agent import Proposed
from hermes_agent.app.environment_prompt import CONTEXT_FILES, OTHER_CONTEXT_FILES, context_in
from hermes_agent.app.manifest import TOOLSETS
from hermes_agent.app.operations.checkpoints import checkpoints_of
from hermes_agent.app.process import APPROVALS, Options
from hermes_agent.core.chat import own_name
from hermes_agent.core.clock import Clock, RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import GoingInCircles, HermesError, Refused, Unapproved
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.tool import Answer
from hermes_agent.host.late import Needs
from hermes_agent.host.paths import Home, environment
from hermes_agent.host.secrets import Secrets
from hermes_agent.sandbox.jail import scrubbed
from hermes_agent.sandbox.place import Command
from hermes_agent.tools.checkpoints.checkpoints import Cause, Checkpoints
from hermes_agent.tools.files.guard import Guard, ReadLog, content_hash
from hermes_agent.tools.guardrails import Call, Watch, call_of
from hermes_agent.tools.output import Spill, caps_of
from hermes_agent.tools.permission.permission import Permission
from hermes_agent.tools.permission.remembered import RememberedFile
from hermes_agent.tools.permission.requests import (
    COMMAND,
    Allowed,
    Ask,
    Decision,
    Denied,
    NeedsApproval,
    Request,
    Smart,
    fingerprint,
    what,
)
from hermes_agent.tools.permission.unasked import Standpoint
from hermes_agent.tools.settings import ApprovalSettings, CheckpointSettings, GuardrailSettings, TerminalSettings
from hermes_agent.tools.starting import Outside

DEEPEST = 12
"""Folders between the working folder and the file whose context is looked for."""
PERMISSION = "hermes_agent.app.guards:permission_of"
HINT = "Do not try it in another form. Find another way, or say in your reply what you would need."


class Commands(Protocol):
    """What permission checks need to know about a session's shell commands; `ShellTools` provides it.

    - `directory` is the folder of the next command, empty if that is the workspace;
    - `exported` are its environment variables, empty if they are this process's or unknown; blocks;
    - `fed` is the running command whose stdin a call with these arguments writes to, None if none;
    - `outside` knows the wall, and which calls may run outside it.
    """

    outside: Outside

    async def directory(self, session: str) -> str: ...

    def exported(self, session: str) -> Mapping[str, str]: ...

    async def fed(self, session: str, arguments: Mapping[str, object]) -> Command | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionHook:
    """Checks before each tool call whether it may run; where `permission` needs approval, asks the model `smart` (if
    any), then a person. `commands` gives access to the sessions' shells; `variables`: their environment."""

    permission: Permission
    commands: Callable[[], Commands]
    variables: Mapping[str, str]
    standpoint: Standpoint
    smart: Smart | None = None

    async def before_call(self, proposed: Proposed) -> None:
        """Raise `Refused` where the call may not run."""
        request = await self._request(proposed)
        if proposed.facts.effect is Effect.READS and Capability.EXEC not in request.needs:
            decision = self.permission.decide(request)  # Nothing is looked up for such a call: no thread is needed.
        else:
            decision = await asyncio.to_thread(self.permission.decide, request)
        if isinstance(decision, NeedsApproval):
            decision = await self._judged(request, decision, proposed)
        if isinstance(decision, NeedsApproval):
            answer = await proposed.context.ask(decision.question)
            decision = await self.permission.remember(request, answer)
        if isinstance(decision, Denied):
            raise (Unapproved if decision.unasked else Refused)(decision.reason, hint=HINT)
        if decision.outside:
            self.commands().outside.let_out(proposed.context.key)

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:  # noqa: ARG002 - the Protocol's shape
        """Nothing to add."""
        return answer

    async def _request(self, proposed: Proposed) -> Request:
        context, standpoint = proposed.context, self.standpoint
        request = Request(
            tool=proposed.tool.schema.name,
            needs=proposed.tool.needs,
            facts=proposed.facts,
            arguments=proposed.arguments,
            session=context.session,
            workspace=context.workspace,
            confined=not all(map(standpoint.is_owner, context.speakers)),
            principal=context.speaker,
            granted=standpoint.granted_to(context.speakers),
            attended=standpoint.attended,
            unasked=standpoint.asks_nothing(context.speaker, proposed.tool.needs),
        )
        if Capability.EXEC not in proposed.tool.needs:
            return request
        commands, command = self.commands(), str(proposed.arguments.get(COMMAND, ""))
        fed = await commands.fed(context.session, proposed.arguments)
        exported = cache(lambda: commands.exported(context.session) or self.variables)
        return replace(
            request,
            folder=await commands.directory(context.session),
            environment=cache(lambda: fingerprint(exported(), command)),
            search=lambda: exported().get("PATH", ""),
            feeds=fed.text if fed else "",
            wall=await asyncio.to_thread(commands.outside.wall),
            outside=fed.outside if fed else proposed.arguments.get("outside") is True,
            stopped=commands.outside.stopped(context.session, command),
        )

    async def _judged(self, request: Request, asked: NeedsApproval, proposed: Proposed) -> Decision:
        """The auxiliary model's decision, or the unchanged question for the person."""
        if self.smart is None:
            return asked
        match await self.smart.opinion(request, asked.reasons):
            case "approve":
                proposed.context.progress(f"allowed by the auxiliary model: {what(request)[:150]}")
                return Allowed()
            case "deny":
                return Denied(f"The auxiliary model refused it ({'; '.join(asked.reasons)}).")
            case "ask":
                return asked


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailHook:
    """Stops one run from going in circles: for repeated calls adds advice, answers instead, or ends the run."""

    watch: Watch

    async def before_call(self, proposed: Proposed) -> None:
        """Raise `Refused` with the answer to give instead, or `GoingInCircles` to end the run."""
        decision = self.watch.before(_call(proposed))
        match decision.kind:
            case "run":
                return
            case "answer":
                raise Refused(decision.text)
            case "stop":
                raise GoingInCircles(f"Stopped: {decision.text}. The limits are under `guardrails`.")

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """The answer, with guidance appended if the call repeats."""
        text = "".join(part.text for part in answer.parts if isinstance(part, Text))
        guidance = self.watch.after(_call(proposed), failed=answer.is_error, result=text)
        if not guidance:
            return answer
        return replace(answer, parts=(*answer.parts, Text(text=f"\n[{guidance}]", origin=Origin.RUNTIME)))


def _call(proposed: Proposed) -> Call:
    return call_of(proposed.tool.schema.name, proposed.arguments, reads=proposed.facts.effect is Effect.READS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillHook:
    """Truncates tool results that are too large for the model and saves them in full on disk."""

    spill: Spill

    async def before_call(self, proposed: Proposed) -> None:
        """Nothing to decide."""

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """The answer, or its head and tail with the path of the whole result."""
        context = proposed.context
        return await self.spill.fit(proposed.tool.schema.name, answer, context.key, own_name(context.workspace))


@dataclass(frozen=True, slots=True, kw_only=True)
class SubfolderContextHook:
    """Appends a subfolder's context files (AGENTS.md, ...) to the first result of a session that touches it. `log`
    remembers per session which were shown, across processes; `looked` caches checked paths."""

    log: ReadLog
    looked: set[tuple[str, str]] = field(default_factory=set)

    async def before_call(self, proposed: Proposed) -> None:
        """Nothing to decide."""

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """The answer, followed by the context files of each subfolder touched for the first time."""
        paths, context = proposed.facts.paths, proposed.context
        looks = {(context.session, path) for path in paths or ()}
        if answer.is_error or not paths or looks <= self.looked:
            return answer
        found = await asyncio.to_thread(self._unseen, paths, context.workspace, context.session)
        self.looked.update(looks)
        return replace(answer, parts=(*answer.parts, *found)) if found else answer

    def _unseen(self, paths: tuple[str, ...], workspace: str, session: str) -> list[Text]:
        root = Path(workspace).resolve()
        parts: list[Text] = []
        for folder in dict.fromkeys(folder for path in paths for folder in _below(Path(path), root)):
            if self.log.known(session, folder):
                continue
            text, _ = context_in(folder, root, (*CONTEXT_FILES, *OTHER_CONTEXT_FILES))
            self.log.saw(session, folder, content_hash(text.encode("utf-8", "replace")))
            if text:
                parts.append(Text(text=f"\n\n[for files in {folder.relative_to(root)}/]\n{text}", origin=Origin.FILE))
        return parts


def _below(path: Path, root: Path) -> Iterator[Path]:
    """The folders from below the working folder down to this path; none if it lies elsewhere."""
    folder = path if path.is_dir() else path.parent
    if not folder.is_relative_to(root):
        return
    parts = folder.relative_to(root).parts
    for depth in range(1, min(len(parts), DEEPEST) + 1):
        yield root.joinpath(*parts[:depth])


def permission_of(needs: Needs) -> Permission:
    """Factory of the permission policy of a process."""
    remembered = RememberedFile(needs.get(Home).root / APPROVALS, needs.get(Clock), needs.get(Secrets).redact)
    settings, allowed = needs.get(ApprovalSettings), needs.get(Options).allow
    terminal, checkpoints = needs.get(TerminalSettings), needs.get(CheckpointSettings)
    return Permission(
        settings,
        remembered,
        allowed=allowed,
        bare=terminal.place == "local" and terminal.jail != "none",
        largest=checkpoints.max_file_mb << 20 if checkpoints.enabled else 0,
        guard=needs.get(Guard),
    )


def permission_hook(needs: Needs, standpoint: Standpoint, judge: Ask) -> PermissionHook:
    """Factory of the permission hook, with the auxiliary judge in mode `smart`."""
    is_smart = (standpoint.mode or needs.get(ApprovalSettings).mode) == "smart"
    return PermissionHook(
        permission=needs.made(PERMISSION),
        commands=partial(needs.made, TOOLSETS["shell"]),
        variables=scrubbed(environment(), needs.get(TerminalSettings).env_passthrough),
        standpoint=standpoint,
        smart=Smart(judge, RandomIds().short) if is_smart else None,
    )


def guardrail_hook(needs: Needs) -> GuardrailHook:
    """Factory of the guardrail hook of one run."""
    return GuardrailHook(watch=Watch(needs.get(GuardrailSettings)))


def spill_hook(needs: Needs) -> SpillHook:
    """Factory of the spill hook: saves whole results, redacted, in the cache."""
    folder = needs.get(Home).cache / "results"
    return SpillHook(spill=Spill(folder, caps_of(needs), needs.get(Secrets).redact))


def subfolder_context_hook(needs: Needs) -> SubfolderContextHook:
    """Factory of the subfolder hook, with its log in the cache."""
    return SubfolderContextHook(log=ReadLog(needs.get(Home).cache / "context"))


log = logging.getLogger(__name__)
PATIENCE = 2.0  # seconds
CHANGES = frozenset({Capability.FS_WRITE, Capability.EXEC})


@dataclass(slots=True, kw_only=True)
class CheckpointHook:
    """Takes a checkpoint of the affected folders before a turn's first call that changes files. `person`: the user's
    home folder, which is never saved as a whole; `patience`: seconds before progress is shown.

    A failed checkpoint is reported once per run and does not block the call.
    """

    checkpoints: Checkpoints
    person: Path
    turn: int = -1
    taken: set[str] = field(default_factory=set)
    told: bool = False
    patience: float = PATIENCE
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def before_call(self, proposed: Proposed) -> None:
        """Take a checkpoint of each folder that this call is the first of its turn to change."""
        if proposed.facts.effect is Effect.READS or proposed.tool.needs.isdisjoint(CHANGES):
            return
        async with self.one_at_a_time:
            if proposed.turn != self.turn:
                self.turn, self.taken = proposed.turn, set()
            workspace, roots = self._roots(proposed)
            for root, touched in roots.items():
                new = [path for path in touched if path not in self.taken]
                whole = root == workspace and not self.person.is_relative_to(root)
                await self._take(proposed, root, new, whole=whole)

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:  # noqa: ARG002 - the Protocol's shape
        """Nothing to add."""
        return answer

    @staticmethod
    def _roots(proposed: Proposed) -> tuple[Path, dict[Path, list[str]]]:
        """The working folder; and the folders to keep, each with the files that the call is about to change: the
        working folder, and for files elsewhere the folder of each."""
        workspace = Path(os.path.realpath(proposed.context.workspace))
        if proposed.facts.paths is None:
            return workspace, {workspace: []}
        roots: dict[Path, list[str]] = {}
        for path in proposed.facts.paths:
            root = workspace if Path(path).is_relative_to(workspace) else Path(path).parent
            roots.setdefault(root, []).append(path)
        return workspace, roots

    async def _take(self, proposed: Proposed, root: Path, touched: list[str], *, whole: bool) -> None:
        if str(root) in self.taken and (whole or not touched):
            return
        words = "saving a checkpoint of the folder"
        waiting = asyncio.get_running_loop().call_later(self.patience, proposed.context.progress, words)
        told = Cause(why=proposed.facts.summary[:200], session=proposed.context.session, whole=whole)
        try:
            await self.checkpoints.save(root, told, [Path(path) for path in touched])
            self.taken |= {str(root), *touched}
        except (HermesError, OSError) as error:
            log.warning("no checkpoint of %s: %s", root, error)
            if not self.told:
                proposed.context.progress(f"no checkpoint: {error}")
                self.told = True
        finally:
            waiting.cancel()


def checkpoint_hook(needs: Needs) -> CheckpointHook:
    """Factory of the hook of one run."""
    checkpoints = checkpoints_of(needs.get(Home), needs.get(CheckpointSettings), needs.get(Clock))
    return CheckpointHook(checkpoints=checkpoints, person=Path(os.path.realpath(Path.home())))
