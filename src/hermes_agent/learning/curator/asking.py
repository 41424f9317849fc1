"""The model's part of a pass: what becomes of each of its calls, on the staging copy."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import field

from hermes_agent.agent.act import failure
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import BadArguments, HermesError, Refused, StoreError
from hermes_agent.core.messages import Message, Role, ToolCall, ToolResult
from hermes_agent.core.tool import Answer, Tool
from hermes_agent.learning.curator.plan import Denied
from hermes_agent.learning.drafts import OtherWriters
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Claim

log = logging.getLogger(__name__)
READS = frozenset({"skill_view"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The calls of one pass; `denied` are those that were not done."""

    claim: Claim
    store: Store
    tools: Mapping[str, Tool]
    denied: list[Denied] = field(default_factory=list)

    async def answer(self, call: ToolCall, words: str) -> Message:  # noqa: ARG002  the Protocol's shape
        """See `Dispatching`."""
        try:
            answer = await self._act(call)
        except StoreError:
            raise
        except HermesError as error:
            if call.name not in READS:
                self.denied.append(Denied(call=_call_report(call), reason=str(error)))
                log.warning("curator %s: refused %s: %s", self.claim.job.id, _call_report(call), error)
            answer = failure(error)
        result = ToolResult(call_id=call.id, name=call.name, parts=answer.parts, is_error=answer.is_error)
        return Message(role=Role.TOOL, parts=(result,))

    async def _act(self, call: ToolCall) -> Answer:
        if call.name not in self.tools:
            raise Refused(f"There is no tool `{call.name[:80]}` here.", hint=f"There are: {', '.join(self.tools)}.")
        if call.broken:
            raise BadArguments(f"The arguments are not a JSON object: {call.broken[:200]}")
        tool = self.tools[call.name]
        tool.facts(call.arguments, "")
        return await tool.run(call.arguments, OtherWriters(key="", session="", workspace="", speaker=""))


def _call_report(call: ToolCall) -> str:
    """A call in a few words."""
    named = call.arguments.get("into") or call.arguments.get("name") or ""
    action = call.arguments.get("action", "")
    return " ".join(filter(None, (call.name[:80], str(action)[:40], str(named)[:80])))
