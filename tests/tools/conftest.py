"""What the tests of tools share: a call's context, a workspace with a home beside it, and the file tools over both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hermes_agent.core.errors import Refused
from hermes_agent.core.tool import Answer, Question, Tool
from hermes_agent.tools.files.guard import Guard
from hermes_agent.tools.files.readlog import ReadLog
from hermes_agent.tools.files.tools import FileTools
from hermes_agent.tools.files.writing import Writer
from hermes_agent.tools.schema import collect


@dataclass
class Context:
    """A `CallContext` whose person answers from a list."""

    workspace: str
    session: str = "20260101_000000_abcdef"
    call: str = "call_1"
    attach: bool = False
    left: float | None = None
    answers: list[str] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    @property
    def key(self) -> str:
        return f"{self.session}/{self.call}"

    def seconds_left(self) -> float | None:
        return self.left

    def progress(self, text: str) -> None:
        self.lines.append(text)

    async def ask(self, question: Question) -> str:
        self.asked.append(question)
        if not self.answers:
            raise Refused("Nobody is there to answer.")
        return self.answers.pop(0)


class Bench:
    """Tools by name, called as the loop calls them: each call with an id of its own."""

    def __init__(self, tools: tuple[Tool, ...], workspace: Path, session: str = "s1") -> None:
        self.tools = {tool.schema.name: tool for tool in tools}
        self.workspace = workspace
        self.session = session
        self.calls = 0

    def context(self, **changes: Any) -> Context:
        self.calls += 1
        found = {"workspace": str(self.workspace), "session": self.session, "call": f"call_{self.calls}"}
        return Context(**{**found, **changes})

    async def answer(self, name: str, arguments: Mapping[str, Any], **changes: Any) -> Answer:
        return await self.tools[name].run(arguments, self.context(**changes))

    async def __call__(self, tool: str, **arguments: Any) -> str:
        return words(await self.answer(tool, arguments))


def words(answer: Answer) -> str:
    """The text of an answer."""
    return "".join(part.text for part in answer.parts if part.kind == "text")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """HERMES_HOME, below the home of the person."""
    folder = tmp_path / "person" / ".hermes"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def make_files(workspace: Path, home: Path) -> Callable[..., Bench]:
    """Makes file tools; those of one test share the home and what it keeps on disk, not what is in memory."""

    def make(*, session: str = "s1", confined: bool = False, ripgrep: str = "") -> Bench:
        guard = Guard(home=home, person=home.parent, roots=(workspace,) if confined else None)
        log = ReadLog(home / "cache" / "reads")
        tools, aside = collect([FileTools(guard=guard, log=log, writer=Writer(), ripgrep=ripgrep)])
        assert not aside
        return Bench(tools, workspace, session)

    return make


@pytest.fixture
def files(make_files: Callable[..., Bench]) -> Bench:
    return make_files()
