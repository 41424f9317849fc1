"""Which model is asked, and what is said where none can be."""

from dataclasses import replace

import pytest

from hermes_agent.core.errors import NoModel
from hermes_agent.host.late import late
from hermes_agent.providers.dialects import DIALECTS
from hermes_agent.providers.route import choose, load_vendor, output_limit
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.providers.vendor import Vendor
from hermes_agent.providers.vendors import VENDORS
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
        ("deepseek/deepseek-v4.1-flash", "openrouter/deepseek/deepseek-v4.1-flash", "k3"),
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


@pytest.mark.parametrize("name", VENDORS)
def test_every_vendor_of_the_table_is_complete(name: str):
    vendor = load_vendor(name)
    assert isinstance(vendor, Vendor)
    assert vendor.name == name
    assert vendor.dialect in DIALECTS
    assert not vendor.base_url.endswith("/")
    assert not vendor.needs_key or vendor.key_names
    assert not vendor.window_probe or callable(late(vendor.window_probe))
