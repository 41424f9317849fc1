import pytest

from hermes_agent.core.messages import Role, Text, Thinking
from hermes_agent.providers.catalog import ModelFacts
from hermes_agent.providers.claude import thinking_fields
from hermes_agent.providers.verifier import Turn
from tests.providers.asking import result

ADAPTIVE = ModelFacts(thinking="adaptive", thinking_off="disabled")
BUDGET = ModelFacts(thinking="budget")
SUMMARIZED = {"type": "adaptive", "display": "summarized"}


def enabled(tokens: int) -> dict:
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


@pytest.mark.parametrize(
    ("facts", "level", "room", "fields"),
    [
        (ADAPTIVE, "high", 32_000, {"thinking": SUMMARIZED, "output_config": {"effort": "high"}}),
        (ADAPTIVE, "none", 32_000, {"thinking": {"type": "disabled"}}),
        (BUDGET, "high", 64_000, enabled(16_384)),
        (BUDGET, "high", 10_000, enabled(5_000)),
        (BUDGET, "high", 2_000, {}),
        (BUDGET, "none", 64_000, {}),
        (ModelFacts(), "high", 64_000, {}),
    ],
)
def test_a_level_is_told_as_the_model_wants_it(facts, level, room, fields):
    assert thinking_fields(facts, level, room, []) == fields


@pytest.mark.parametrize(
    ("first", "thinks"), [(Text(text="x"), False), (Thinking(text="x"), False), (Thinking(text="x", opaque="s"), True)]
)
def test_a_turn_of_calls_that_began_without_thinking_goes_on_without(first, thinks):
    turns = [Turn(role=Role.ASSISTANT, parts=[first]), Turn(role=Role.USER, results=[result("c", "x")])]

    assert bool(thinking_fields(BUDGET, "high", 64_000, turns)) is thinks
