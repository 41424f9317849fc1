"""Tool `goal`: the agent reads goals, proposes one, and reports where it stands. The criteria and the person decide."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from hermes_agent.core.chat import Conversation
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import ToolError
from hermes_agent.core.mandate import Work
from hermes_agent.core.messages import Origin
from hermes_agent.core.tool import CallContext, Question, tool
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.work.goals import Criterion, Kind
from hermes_agent.work.goals.desk import Desk, Whose, Wish
from hermes_agent.work.goals.rules import page

YES, NO = "yes", "no"


class GoalTools:
    """The toolset `goals`: its one tool `goal`. `whose` says whose goals a principal has."""

    def __init__(self, desk: Callable[[], Desk], whose: Callable[[str], Whose]) -> None:
        self._desk, self._whose = desk, whose

    @tool(effect=Effect.KEYED, reads_when="action=get", origin=Origin.RUNTIME)
    async def goal(
        self,
        action: Literal["get", "propose", "report"],
        context: CallContext,
        text: str = "",
        commands: list[str] | None = None,
        state: Literal["done", "blocked", "waiting"] = "done",
    ) -> str:
        """The person's goals: get them; propose one to the person; report the state of yours. Criteria are checked
        after your reply.

        Args:
            text: the goal; in a report why
            commands: each must exit with 0
        """
        desk = self._desk()
        record = await desk.store.sessions.get(context.session)
        if record is None or not Conversation.parse(record.conversation).is_private:
            raise ToolError("Goals are a private matter: not in a chat that others read.")
        if action == "get":
            return await self._shown(desk, record)
        if record.surface in set(Work):
            raise ToolError("Here goals can only be read: a person sets and ends them.")
        if action == "propose":
            return await self._propose(desk, record, context, text, commands or [])
        goal = await desk.store.goals.pursued(record.id)
        if goal is None:
            raise ToolError("No goal is pursued in this conversation.")
        await desk.report(goal, state if state != "done" else "", text)
        return f"Noted. The criteria of {goal.id} are checked when this reply ends; they decide."

    async def _shown(self, desk: Desk, record: SessionRecord) -> str:
        goals = await desk.store.goals.list(self._whose(record.principal).key)
        pages = [page(replace(goal, why=""), await desk.store.goals.receipts(goal.id, 5)) for goal in goals]
        return "\n".join(pages) or "There are no open goals."

    async def _propose(
        self, desk: Desk, record: SessionRecord, context: CallContext, text: str, commands: list[str]
    ) -> str:
        criteria = tuple(Criterion(kind=Kind.COMMAND, text=each) for each in commands)
        proof = "\n".join(f"- {each}" for each in criteria) or "- a model judges that it is reached"
        there = await desk.store.goals.pursued(record.id)
        asks = f"Shall this be a goal that I pursue until it is reached?\n{text}"
        if there is not None:
            asks = f"Shall the goal {there.id} have further criteria?\n{there.text}"
            if not commands:
                raise ToolError(f"Goal {there.id} is pursued here: propose `commands` that prove it.")
        question = Question(
            text=f"{asks}\nIt counts as done when:\n{proof}",
            about=hashlib.sha256(repr((text, commands, record.workspace)).encode("utf-8", "replace")).hexdigest(),
            choices=(YES, NO),
        )
        answer = (await context.ask(question)).strip()
        if answer.lower() not in (YES, "y"):
            return f"The person did not agree: {answer}"
        who = self._whose(record.principal)
        if there is not None:
            await desk.add(who, there, *criteria)
            return f"The person agreed: {there.id} has these criteria too."
        wish = Wish(text=text, criteria=criteria, origin="proposed")
        made = await desk.create(who, wish, record, record.workspace)
        return f"The person agreed: {made.goal.id} begins after this reply."
