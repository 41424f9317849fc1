"""What the tests of tools share: a call's context, and tools called as the loop calls them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Set
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from hermes_agent.core.effects import Location
from hermes_agent.core.errors import Refused
from hermes_agent.core.messages import Origin, Trust
from hermes_agent.core.tool import Answer, Question, Tool
from hermes_agent.tools.schema import said


@dataclass
class Context:
    """A `CallContext` whose person answers from a list."""

    workspace: str
    session: str = "20260101_000000_abcdef"
    call: str = "call_1"
    attach: bool = False
    begun_at: Location = field(default_factory=Location)
    run: str = ""
    ends: Callable[[], bool] = lambda: True
    left: float | None = None
    trust: Trust = Trust.CLEAN
    answers: list[str] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    called: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    calls_give: Callable[[str, Mapping[str, object]], Answer] = lambda name, arguments: said(
        f"{name} said", Origin.TOOL
    )

    @property
    def key(self) -> str:
        return f"{self.session}-{self.call}"

    @property
    def speaker(self) -> str:
        return "cli:me"

    @property
    def speakers(self) -> Set[str]:
        return {"cli:me"}

    def seconds_left(self) -> float | None:
        return self.left

    def progress(self, text: str) -> None:
        self.lines.append(text)

    async def use(self, name: str, arguments: Mapping[str, object]) -> Answer:
        self.called.append((name, dict(arguments)))
        return self.calls_give(name, arguments)

    async def ask(self, question: Question) -> str:
        self.asked.append(question)
        if not self.answers:
            raise Refused("Nobody is there to answer.")
        return self.answers.pop(0)

    async def hold(self, handle: str) -> None:
        self.begun_at = replace(self.begun_at, handle=handle)

    def delegating(self, goals: Mapping[str, str]) -> AbstractAsyncContextManager[None]:
        self.delegated = dict(goals)
        return nullcontext()


class Bench:
    """Tools by name, called as the loop calls them: each call with an id of its own."""

    def __init__(self, tools: tuple[Tool, ...], workspace: Path, session: str = "s1") -> None:
        self.tools = {tool.schema.name: tool for tool in tools}
        self.workspace = workspace
        self.session = session
        self.calls = 0
        self.location: Callable[[], Awaitable[Location]] | None = None

    def context(self, **changes: object) -> Context:
        self.calls += 1
        found = Context(workspace=str(self.workspace), session=self.session, call=f"call_{self.calls}")
        return replace(found, **changes)

    async def answer(self, name: str, arguments: Mapping[str, object], **changes: object) -> Answer:
        return await self.tools[name].run(arguments, self.context(**changes))

    async def __call__(self, tool: str, **arguments: object) -> str:
        return words(await self.answer(tool, arguments))


def words(answer: Answer) -> str:
    """The text of an answer."""
    return "".join(part.text for part in answer.parts if part.kind == "text")
