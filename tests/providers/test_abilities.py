"""What a person is told of a model beforehand."""

from dataclasses import replace

from hermes_agent.providers.abilities import abilities, blind, limits_of
from hermes_agent.providers.catalog import FREE, ModelFacts, catalogue_date
from tests.providers.asking import route_to


def test_a_model_that_can_everything_needs_no_words():
    route = route_to("anthropic/claude-opus-5-5")
    assert (limits_of(route), blind(route)) == ((), "")


def test_a_model_without_tools_is_told():
    route = route_to("custom/plain")
    (said,) = limits_of(replace(route, facts=replace(route.facts, tools=False)))
    assert said == "custom/plain calls no tools: they are left out, and it answers with words alone."


def test_a_model_that_is_taken_for_an_earlier_one_is_told():
    route = route_to("anthropic/claude-opus-4-9")
    begins = f"anthropic/claude-opus-4-9 is not in the catalogue of {catalogue_date()}: it is treated like"
    assert limits_of(route) == (f"{begins} anthropic/claude-opus-4-8; its price is unknown.",)
    priced = replace(route, facts=replace(route.facts, price=FREE))
    assert limits_of(priced) == (f"{begins} anthropic/claude-opus-4-8.",)


def test_a_small_window_is_told_and_a_tight_one_with_advice():
    (tight,) = limits_of(route_to("ollama/qwen3", window=8_192))
    (small,) = limits_of(route_to("ollama/qwen3", window=32_768))
    assert "8,192 tokens, of which a reply may take 2,048. Give it more" in tight
    assert "32,768" in small
    assert "Give it more" not in small


def test_a_model_that_sees_no_pictures_is_told():
    assert "sees no pictures" in blind(route_to("deepseek/deepseek-v4-pro"))


def test_what_a_model_can_do_is_said_in_words():
    facts = ModelFacts(thinking="effort", efforts=("low", "high"), tool_efforts=("low",), parallel=False)
    assert abilities(facts) == {
        "tools": "one at a time",
        "images": "no",
        "files": "no",
        "thinking": "low, high; beside tools: low",
    }
    assert abilities(ModelFacts(tools=False))["thinking"] == "as the model likes"
