"""What stands around every call: permission, guardrails, and the size of answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Protocol

from hermes_agent.agent.hooks import Proposed
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import GoingInCircles, Refused, Unapproved
from hermes_agent.core.ids import RandomIds
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.tool import Answer
from hermes_agent.tools.excerpt import Caps
from hermes_agent.tools.guardrails.settings import GuardrailSettings
from hermes_agent.tools.guardrails.watching import Call, Watch, call_of
from hermes_agent.tools.permission.environment import fingerprint
from hermes_agent.tools.permission.permission import Permission
from hermes_agent.tools.permission.requests import COMMAND, Allowed, Decision, Denied, NeedsApproval, Request, what
from hermes_agent.tools.permission.smart import Ask, Smart
from hermes_agent.tools.permission.unasked import Standpoint
from hermes_agent.tools.spill import Spill

HINT = "Do not try it in another form. Find another way, or say in your reply what you would need."


class Commands(Protocol):
    """- `directory` is where a session's next command runs, empty where that is its workspace;
    - `exported` are the variables that it sees, empty where they are those of this process, or not known here; blocks;
    - `fed` is the command whose input a call with these arguments writes to, empty where it writes to none."""

    async def directory(self, session: str) -> str: ...

    def exported(self, session: str) -> Mapping[str, str]: ...

    async def fed(self, session: str, arguments: Mapping[str, object]) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionHook:
    """Asks `permission` before each call. `commands` knows those of a session, `variables` are what they see; `smart`
    is asked before a person where there is one."""

    permission: Permission
    commands: Commands
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

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:  # noqa: ARG002 - the Protocol's shape
        """Nothing to add."""
        return answer

    async def _request(self, proposed: Proposed) -> Request:
        context, standpoint = proposed.context, self.standpoint
        runs_commands = Capability.EXEC in proposed.tool.needs
        return Request(
            tool=proposed.tool.schema.name,
            needs=proposed.tool.needs,
            facts=proposed.facts,
            arguments=proposed.arguments,
            session=context.session,
            workspace=context.workspace,
            folder=await self.commands.directory(context.session) if runs_commands else "",
            environment=cache(partial(self._environment, proposed)) if runs_commands else str,
            principal=context.speaker,
            granted=standpoint.granted_to(context.speakers),
            attended=standpoint.attended,
            unasked=standpoint.unasked.holds_for(context.speaker),
            feeds=await self.commands.fed(context.session, proposed.arguments) if runs_commands else "",
        )

    def _environment(self, proposed: Proposed) -> str:
        seen = self.commands.exported(proposed.context.session) or self.variables
        return fingerprint(seen, str(proposed.arguments.get(COMMAND, "")))

    async def _judged(self, request: Request, asked: NeedsApproval, proposed: Proposed) -> Decision:
        """The auxiliary model's decision, or the question as it was."""
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
    """Watches the calls of one run; each run has a `watch` of its own."""

    watch: Watch

    async def before_call(self, proposed: Proposed) -> None:
        """Raise `Refused` with the answer that stands in the call's place, or `GoingInCircles` to end the run."""
        decision = self.watch.before(_call(proposed))
        match decision.kind:
            case "run":
                return
            case "answer":
                raise Refused(decision.text)
            case "stop":
                raise GoingInCircles(f"Stopped: {decision.text}. The limits are under `guardrails`.")

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """The answer, with guidance behind it where it helps."""
        text = "".join(part.text for part in answer.parts if isinstance(part, Text))
        guidance = self.watch.after(_call(proposed), failed=answer.is_error, result=text)
        if not guidance:
            return answer
        return replace(answer, parts=(*answer.parts, Text(text=f"\n[{guidance}]", origin=Origin.RUNTIME)))


def _call(proposed: Proposed) -> Call:
    return call_of(proposed.tool.schema.name, proposed.arguments, reads=proposed.facts.effect is Effect.READS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillHook:
    """Shortens answers that are too large to give to a model at once; the whole stays on disk."""

    spill: Spill

    async def before_call(self, proposed: Proposed) -> None:
        """Nothing to decide."""

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """The answer, or its head and tail with the path of the whole."""
        return await self.spill.fit(proposed.tool.schema.name, answer, proposed.context.key)


def permission_hook(
    permission: Permission,
    commands: Commands,
    variables: Mapping[str, str],
    standpoint: Standpoint,
    judge: Ask | None,
) -> PermissionHook:
    """The hook that asks this permission, and before a person the auxiliary model where it may."""
    smart = Smart(judge, RandomIds().short) if judge is not None else None
    return PermissionHook(
        permission=permission, commands=commands, variables=variables, standpoint=standpoint, smart=smart
    )


def guardrail_hook(settings: GuardrailSettings) -> GuardrailHook:
    """The hook that watches one run."""
    return GuardrailHook(watch=Watch(settings))


def spill_hook(folder: Path, caps: Caps, redact: Callable[[str], str]) -> SpillHook:
    """The hook that keeps whole answers, without secrets, in this folder."""
    return SpillHook(spill=Spill(folder, caps, redact))
