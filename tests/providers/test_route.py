"""Which model is asked, and what is said where none can be."""

from dataclasses import replace

import pytest

from hermes_agent.core.errors import NoModel
from hermes_agent.providers.catalog import Price
from hermes_agent.providers.route import choose, output_limit
from hermes_agent.providers.settings import ModelOverride, ModelSettings, PriceOverride
from tests.providers.asking import route_to


def keys(**known: str):
    return lambda name: known.get(name)


def chosen(default: str = "", *, secrets=None, **settings: object):
    every = keys(OPENAI_API_KEY="k1", ANTHROPIC_API_KEY="k2", OPENROUTER_API_KEY="k3")
    return choose(ModelSettings(default=default, **settings), secrets or every)


@pytest.mark.parametrize(
    ("name", "route", "key"),
    [
        ("openai/gpt-5.2", "openai/gpt-5.2", "k1"),
        ("anthropic/claude-opus-5-5", "anthropic/claude-opus-5-5", "k2"),
        ("openrouter/anthropic/claude-opus-5.5", "openrouter/anthropic/claude-opus-5.5", "k3"),
        ("openai", "openai/gpt-5.2", "k1"),
        ("moonshotai/kimi-k3", "openrouter/moonshotai/kimi-k3", "k3"),
        ("gpt-5.2", "openai/gpt-5.2", "k1"),
        ("claude-haiku-4-5", "anthropic/claude-haiku-4-5", "k2"),
        ("", "anthropic/claude-opus-5-5", "k2"),
    ],
)
def test_a_name_leads_to_a_vendor_and_its_key(name: str, route: str, key: str):
    assert (chosen(name).name, chosen(name).key) == (route, key)


def test_the_configured_vendor_takes_names_without_one():
    assert chosen("some/model", provider="openai").name == "openai/some/model"
    assert chosen("llama", base_url="http://127.0.0.1:8000/v1/").name == "custom/llama"
    assert chosen("llama", base_url="http://127.0.0.1:8000/v1/").base_url == "http://127.0.0.1:8000/v1"


def test_without_any_key_the_sentence_names_both_ways_on():
    with pytest.raises(NoModel, match=r"hermes setup.*hermes demo"):
        chosen(secrets=keys())
    with pytest.raises(NoModel, match=r"ANTHROPIC_API_KEY.*hermes setup.*hermes demo"):
        chosen("anthropic/claude-opus-5-5", secrets=keys(ANTHROPIC_API_KEY="  "))


def test_a_maker_whose_own_key_is_missing_is_offered_through_the_key_that_is_there():
    with pytest.raises(NoModel, match=r"DEEPSEEK_API_KEY.*`openrouter/deepseek/deepseek-v4-pro`"):
        chosen("deepseek/deepseek-v4-pro")
    with pytest.raises(NoModel, match="GROQ_API_KEY") as caught:
        chosen("groq/openai/gpt-oss-120b")
    assert "openrouter" not in str(caught.value)


@pytest.mark.parametrize("key", ["k\u2019y", "two words", "line\nbreak"])
def test_a_key_that_cannot_be_one_is_refused_without_being_shown(key: str):
    with pytest.raises(NoModel, match="OPENAI_API_KEY") as caught:
        chosen("openai/gpt-5.2", secrets=keys(OPENAI_API_KEY=key))
    assert key not in str(caught.value)


def test_a_misspelt_vendor_is_told_the_nearest_one():
    for name in ("opnai/gpt-5.2", "opnai"):
        with pytest.raises(NoModel, match="`openai`"):
            chosen(name, secrets=keys())


def test_a_vendor_without_address_or_model_says_what_to_set():
    with pytest.raises(NoModel, match=r"model\.base_url"):
        chosen("custom/llama")
    with pytest.raises(NoModel, match=r"ollama/MODEL"):
        chosen("ollama")


def test_an_address_comes_from_the_settings_then_the_environment_then_the_vendor():
    env = keys(OPENAI_API_KEY="k", OPENAI_BASE_URL="http://proxy/v1")
    assert chosen("openai/gpt-5.2", secrets=env, base_url="http://here/v1").base_url == "http://here/v1"
    assert chosen("openai/gpt-5.2", secrets=env).base_url == "http://proxy/v1"
    assert chosen("openai/gpt-5.2").base_url == "https://api.openai.com/v1"


def test_settings_override_the_catalogue_and_local_models_are_free():
    facts = chosen("openai/unknown", window=9_000, price_input=1.0, price_output=2.0).facts
    assert (facts.window, facts.price.input, facts.price.output) == (9_000, 1.0, 2.0)
    assert chosen("openai/unknown").facts.price is None
    assert chosen("openai/unknown").facts.window == 128_000
    local = chosen("ollama/qwen3").facts
    assert (local.price.input, local.window) == (0.0, 8_192)


def test_a_key_is_never_shown():
    assert "k1" not in repr(chosen("openai/gpt-5.2"))


def test_effort_is_the_nearest_level_and_fewer_levels_beside_tools():
    route = route_to("openai/gpt-5.6-sol")
    assert route.effort("high", tools=True) == "high"
    route = replace(route, facts=replace(route.facts, tool_efforts=("none",)))
    assert route.effort("high", tools=False) == "high"
    assert route.effort("high", tools=True) == "none"
    assert route.effort("nonsense", tools=False) == "medium"
    assert route_to("openai/unknown").effort("high", tools=False) is None


def test_a_model_may_be_asked_in_a_dialect_of_its_own():
    assert route_to("openai/gpt-5.2").dialect == "openai_chat"
    assert route_to("openai/gpt-5.6-sol").dialect == "openai_responses"


def test_the_output_limit_is_the_model_s_or_what_is_asked_for():
    route = route_to("anthropic/claude-haiku-4-5")
    assert (output_limit(route, None), output_limit(route, 50_000), output_limit(route, 10**6)) == (
        32_000,
        50_000,
        64_000,
    )


def test_a_query_of_the_address_stays_behind_the_path():
    deployment = "https://me.openai.azure.com/openai/deployments/d?api-version=2024-10-21"
    route = chosen("azure/d", secrets=keys(AZURE_OPENAI_API_KEY="k"), base_url=deployment)
    assert route.url("/chat/completions") == (
        "https://me.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21"
    )
    assert chosen("openai/gpt-5.2").url("/chat/completions") == "https://api.openai.com/v1/chat/completions"


def test_the_key_stands_in_the_header_that_the_vendor_wants():
    assert chosen("openai/gpt-5.2").key_header("authorization") == {"authorization": "Bearer k1"}
    assert chosen("anthropic/x").key_header("x-api-key") == {"x-api-key": "k2"}
    azure = chosen("azure/d", secrets=keys(AZURE_OPENAI_API_KEY="k"), base_url="https://me/openai/v1")
    assert azure.key_header("authorization") == {"api-key": "k"}
    assert chosen("ollama/x").key_header("authorization") == {}


def test_a_short_name_gets_the_vendor_s_prefix_and_a_long_one_stays():
    fireworks = keys(FIREWORKS_API_KEY="k")
    short, long = (chosen(f"fireworks/{name}", secrets=fireworks) for name in ("glm-5p3", "accounts/me/models/own"))
    assert (short.model, short.facts.window) == ("accounts/fireworks/models/glm-5p3", 1_048_576)
    assert long.model == "accounts/me/models/own"


def test_models_of_another_vendor_are_known_where_they_are_served():
    azure = chosen("azure/gpt-5.2", secrets=keys(AZURE_OPENAI_API_KEY="k"), base_url="https://me/openai/v1")
    assert azure.facts == chosen("openai/gpt-5.2").facts


def test_what_a_person_knows_of_a_model_comes_before_the_catalogue():
    models = {
        "openai/gpt-5.2": ModelOverride(window=9_000, images=False, efforts=("high", "low", "odd")),
        "openai/mine": ModelOverride(price=PriceOverride(input=1.0, output=2.0)),
    }
    known = choose(ModelSettings(default="openai/gpt-5.2"), keys(OPENAI_API_KEY="k"), models).facts
    mine = choose(ModelSettings(default="openai/mine"), keys(OPENAI_API_KEY="k"), models).facts
    assert (known.window, known.images, known.efforts, known.output) == (9_000, False, ("low", "high"), 128_000)
    assert mine.price == Price(input=1.0, output=2.0, cached=1.0, cache_write=1.0)


def test_a_prompt_that_is_kept_for_an_hour_costs_twice_the_input_to_write():
    claude, other = (route_to(name, cache_ttl="1h") for name in ("anthropic/claude-opus-5-5", "openai/gpt-5.2"))
    assert (claude.cache_ttl, claude.facts.price.cache_write) == ("1h", 2 * claude.facts.price.input)
    bedrock, untold = (
        route_to(name, cache_ttl="1h") for name in ("bedrock/global.anthropic.claude-sonnet-4-6", "openai/gpt-5.6-sol")
    )
    assert bedrock.facts.price.cache_write == 2 * bedrock.facts.price.input
    assert untold.facts.price == route_to("openai/gpt-5.6-sol").facts.price
    assert other.facts.price == route_to("openai/gpt-5.2").facts.price
