"""What `hermes cost` shows is, to the token, what the providers told; whatever it is asked by."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.core.messages import ToolCall, ToolResult, Usage
from hermes_agent.core.spending import Limit, Rules, Scope, nanos
from hermes_agent.providers.demo.script import Call, Heard, Say, Think
from hermes_agent.replay.seam import Book, StoredLedger
from hermes_agent.store.database import open_store
from hermes_agent.store.usage import GroupBy
from hermes_agent.testing.faults import Status
from hermes_agent.testing.scripted import Step, tries
from tests.cli.shell import typed
from tests.providers.asking import DIALECTS, Spoken, result, talking

QUESTIONS = 6
PLENTY = Rules(limits=(Limit(scope=Scope.DAY, money=nanos(100.0)),))


def script(heard: Heard) -> Step:
    """Thinking, words, now and then a call; every third question is refused twice before it is answered."""
    pieces = (Think("Hm, " * heard.turn), Say("Words. " * (heard.turn + 1)), Call("read_file", {"path": "a"}))
    answer = pieces if heard.turn == 1 else pieces[:2]
    return tries(Status(503), Status(429), answer) if heard.turn % 3 == 2 else answer


def summed(usages: Sequence[Usage]) -> dict[str, int]:
    names = ("input", "output", "cached", "cache_write", "reasoning")
    return {name: sum(getattr(usage, name) for usage in usages) for name in names}


@dataclass(frozen=True, kw_only=True)
class Talked:
    """What the server told, how often it was asked, and what the replies say that they cost."""

    told: list[Usage]
    requests: int
    dollars: float


async def talked(database: Path, spoken: Spoken) -> Talked:
    """A conversation in two sessions, for two purposes."""
    store, dollars = await open_store(database), 0.0
    async with talking(spoken, script) as talk:
        talk.enter_into(StoredLedger(Book(store=store, clock=SystemClock(), rules=PLENTY), "cli:ann"))
        for number in range(QUESTIONS):
            talk.say(f"Question {number}. " * 200)
            changes = {"session": f"s{number % 2}", "purpose": ("chat", "title")[number % 2]}
            reply = await talk.ask(call_id=f"c{number}", **changes)
            dollars += reply.cost or 0.0
            talk.answer(*answers(reply.message.tool_calls))
        told = [exchange.usage for exchange in talk.server.exchanges if exchange.usage is not None]
    await store.close()
    return Talked(told=told, requests=len(talk.server.exchanges), dollars=dollars)


@pytest.mark.parametrize("spoken", DIALECTS, ids=lambda spoken: spoken.name)
def test_every_view_adds_up_to_what_the_provider_told(tmp_path: Path, spoken: Spoken) -> None:
    talk = asyncio.run(talked(tmp_path / "hermes.db", spoken))
    whole = summed(talk.told)
    if not spoken.counts_thinking:
        whole["reasoning"] = 0  # the server counts it within the output, and does not say

    assert len(talk.told) == QUESTIONS < talk.requests
    assert whole["cached"] > 0
    for by in GroupBy:
        shown = json.loads(typed(tmp_path, "cost", "--by", by.value, "--json").out)
        assert summed([Usage(**total["usage"]) for total in shown]) == whole
        assert sum(total["cost"] for total in shown) == pytest.approx(talk.dollars)
        assert sum(total["calls"] for total in shown) == talk.requests
        assert all(total["usage"]["known"] for total in shown)
    share = f"{100 * whole['cached'] / whole['input']:.0f} %"
    assert share in typed(tmp_path, "cost", "--by", "provider").out


def answers(calls: Sequence[ToolCall]) -> list[ToolResult]:
    """A result for each call, so that the conversation may go on."""
    return [result(call.id, "text") for call in calls]
