"""Thinking parameters of Claude, the same in Anthropic's own API and in Bedrock's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hermes_agent.core.messages import Role, Thinking
from hermes_agent.providers.catalog import ModelFacts
from hermes_agent.providers.vendor import Level
from hermes_agent.providers.verifier import Turn

# Tokens of reasoning for the models that take a number instead of a level; 1,024 is the least that the API takes.
BUDGETS: dict[Level, int] = {
    "minimal": 1_024,
    "low": 4_096,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 32_768,
}
LEAST_BUDGET = 1_024


def thinking_fields(facts: ModelFacts, level: Level, max_output: int, turns: Sequence[Turn]) -> dict[str, Any]:
    """The request fields for thinking at this level; none where the model, or the conversation, has no thinking."""
    if facts.thinking == "adaptive":
        if level == "none":
            return {"thinking": {"type": facts.thinking_off}}
        return {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": level},
        }
    budget = min(BUDGETS.get(level, 0), max_output // 2)
    if facts.thinking != "budget" or budget < LEAST_BUDGET or not _may_think(turns):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _may_think(turns: Sequence[Turn]) -> bool:
    """With a budget, a turn that called tools must have begun with thinking: one made by another model did not."""
    last = next((turn for turn in reversed(turns) if turn.role is Role.ASSISTANT), None)
    if last is None or not turns[-1].results:
        return True
    first = last.parts[0]
    return isinstance(first, Thinking) and bool(first.opaque)
