"""Permission as a hook around every call: it may let it run, refuse it, or ask the person first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from hermes_agent.agent.hooks import Proposed
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import Refused
from hermes_agent.core.tool import Answer
from hermes_agent.tools.excerpt import Caps
from hermes_agent.tools.permission import Allowed, Denied, NeedsApproval, Permission, Request
from hermes_agent.tools.spill import Spill

HINT = "Do not try it in another form. Find another way, or say in your reply what you would need."


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionHook:
    """Asks `permission` before each call. `folder` tells where a session's commands run."""

    permission: Permission
    folder: Callable[[str], Awaitable[str]]
    granted: frozenset[Capability] = frozenset(Capability)
    attended: bool = True

    async def before_call(self, proposed: Proposed) -> None:
        """Raise `Refused` where the call may not run."""
        context = proposed.context
        request = Request(
            tool=proposed.tool.schema.name,
            needs=proposed.tool.needs,
            facts=proposed.facts,
            arguments=proposed.arguments,
            session=context.session,
            workspace=context.workspace,
            folder=await self.folder(context.session) if Capability.EXEC in proposed.tool.needs else "",
            granted=self.granted,
            attended=self.attended,
        )
        if proposed.facts.effect is Effect.READS and Capability.EXEC not in request.needs:
            decision = self.permission.decide(request)  # Nothing is looked up for such a call: no thread is needed.
        else:
            decision = await asyncio.to_thread(self.permission.decide, request)
        if isinstance(decision, NeedsApproval):
            answer = await context.ask(decision.question)
            decision = await asyncio.to_thread(self.permission.remember, request, answer)
        match decision:
            case Allowed():
                return
            case Denied(reason=reason):
                raise Refused(reason, hint=HINT)

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:  # noqa: ARG002 - the Protocol's shape
        """Nothing to add."""
        return answer


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
    folder: Callable[[str], Awaitable[str]],
    granted: frozenset[Capability],
    *,
    attended: bool,
) -> PermissionHook:
    """The hook that asks this permission."""
    return PermissionHook(permission=permission, folder=folder, granted=granted, attended=attended)


def spill_hook(folder: Path, caps: Caps) -> SpillHook:
    """The hook that keeps whole answers in this folder."""
    return SpillHook(spill=Spill(folder, caps))
