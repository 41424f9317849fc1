"""Where other packages may step in around a tool call: permission, guardrails, spilling of large results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import ToolCall
from hermes_agent.core.tool import Answer, CallContext, CallFacts, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A call that is about to run: what the model asked, the tool and arguments that it means, what it does, its
    surroundings, and the number of its turn in the session."""

    call: ToolCall
    tool: Tool
    arguments: Mapping[str, Any]
    facts: CallFacts
    context: CallContext
    turn: int = 0


class Hook(Protocol):
    """- `before_call` runs before the intent is committed; a `ToolError` that it raises becomes the call's answer, and
    the
      tool does not run;
    - `GoingInCircles`, raised by `before_call`, ends the run;
    - `after_call` sees the answer, also that of a call that failed or was refused, before it is committed, and returns
      it or another one;
    - hooks run in their order, both ways."""

    async def before_call(self, proposed: Proposed) -> None: ...

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer: ...
