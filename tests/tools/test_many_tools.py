"""With 200 tools beside the core, the prompt stays small and the right one is found."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.messages import Origin, ToolSchema
from hermes_agent.core.section import estimate_tokens
from hermes_agent.core.tool import Answer, CallContext, CallFacts
from hermes_agent.tools.schema import said
from hermes_agent.tools.toolbox import FOUND_AT_ONCE, Toolbox
from tests.tools.bench import Context, words

DATA = json.loads((Path(__file__).parent / "more_tools.json").read_text())
MOST_TOKENS = 300
ENOUGH = 0.95


class Extra:
    """A tool as another server would offer it."""

    core = False
    needs = frozenset({Capability.NET})

    def __init__(self, name: str, description: str, parameters: list[str]) -> None:
        properties = {each: {"type": "string"} for each in parameters}
        self.schema = ToolSchema(
            name=name, description=description, parameters={"type": "object", "properties": properties}
        )

    def facts(self, arguments: object, workspace: str) -> CallFacts:
        return CallFacts(effect=Effect.WRITES, paths=None, summary=self.schema.name)

    async def run(self, arguments: object, context: CallContext) -> Answer:
        return said(f"{self.schema.name} {arguments}", origin=Origin.TOOL)


@pytest.fixture(scope="module")
def box() -> Toolbox:
    return Toolbox([Extra(**each) for each in DATA["tools"]])


def test_there_are_200_tools_and_60_questions() -> None:
    assert len(DATA["tools"]) >= 200
    assert len(DATA["queries"]) == 60


def test_200_more_tools_cost_at_most_300_tokens(box: Toolbox) -> None:
    assert estimate_tokens(msgspec.json.encode(box.offered).decode()) <= MOST_TOKENS


async def test_the_right_tool_is_among_the_first_five_for_most_questions(box: Toolbox) -> None:
    missed = []
    for each in DATA["queries"]:
        answer = words(await box.get("find_tools").run({"query": each["query"]}, Context("/")))
        names = [json.loads(line)["name"] for line in answer.splitlines() if line.startswith("{")]
        assert len(names) <= FOUND_AT_ONCE
        if each["tool"] not in names:
            missed.append((each["query"], names))

    assert len(missed) <= (1 - ENOUGH) * len(DATA["queries"]), missed
