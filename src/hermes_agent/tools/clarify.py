"""Tool `clarify`: asks the person a question."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from hermes_agent.core.effects import Effect
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.tool import Answer, CallContext, Question, tool
from hermes_agent.host.late import Needs


class ClarifyTools:
    """The toolset `clarify`: its one tool asks the person of the conversation a question."""

    @tool(effect=Effect.ASKS, origin=Origin.RUNTIME)
    async def clarify(
        self, question: str, context: CallContext, choices: Annotated[list[str], Meta(max_length=4)] | None = None
    ) -> Answer:
        """Ask the person when you cannot decide by yourself. Wait for the answer.

        Args:
            choices: at most 4; the person may answer freely
        """
        answer = await context.ask(Question(text=question, choices=tuple(choices or ())))
        return Answer(parts=(Text(text=answer, origin=Origin.OWNER),))


def clarify_tools(_: Needs) -> ClarifyTools:
    """Factory of the toolset `clarify`."""
    return ClarifyTools()
