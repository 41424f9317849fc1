"""Models as data."""

import json
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pytest

from hermes_agent.core.messages import Usage
from hermes_agent.providers import catalog
from hermes_agent.providers.catalog import (
    FREE,
    ModelFacts,
    Price,
    catalogue_date,
    cost,
    find,
    find_like,
    known_models,
    nearest,
    overridden,
)
from hermes_agent.providers.route import load_vendor
from hermes_agent.providers.settings import ModelOverride, PriceOverride
from hermes_agent.providers.vendor import LEVELS
from hermes_agent.providers.vendors import VENDORS

# Raised by hand, at the latest with each release: the catalogue may be no more than three months older than this.
TODAY = date(2026, 11, 23)
OLDEST = 92
# What a person configures, or what a server of theirs offers: no catalogue knows those models.
OWN_MODELS = {"azure", "custom", "llamacpp", "lmstudio", "moa", "ollama", "vllm"}
WRITTEN = json.loads(Path(catalog.__file__).with_name("catalog.json").read_bytes())
ROOT = Path(__file__).parents[2]
DOCS = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
NAMED = re.compile(rf"(?<![\w/.-])((?:{'|'.join(VENDORS)})/[\w./:-]*\w)")
# What each vendor calls its levels, from its own pages (`sources` in the catalogue); `none` turns reasoning off.
LEVELS_OF = {
    "anthropic/claude-fable-5-1": "low medium high xhigh max",
    "anthropic/claude-fable-5": "low medium high xhigh max",
    "anthropic/claude-opus-5-5": "low medium high xhigh max",
    "anthropic/claude-opus-5": "none low medium high xhigh max",
    "anthropic/claude-opus-4-8": "none low medium high xhigh max",
    "anthropic/claude-opus-4-7": "none low medium high xhigh max",
    "anthropic/claude-opus-4-6": "none low medium high max",
    "anthropic/claude-sonnet-4-6": "none low medium high max",
    "openai/gpt-6-astra": "low medium high xhigh max",
    "openai/gpt-6.1-sol": "low medium high xhigh max",
    "openai/gpt-5.6-luna": "none low medium high xhigh max",
    "openai/gpt-5.5": "none low medium high xhigh",
    "openai/gpt-5.4-mini": "none low medium high xhigh",
    "openai/gpt-5.2-codex": "low medium high xhigh",
    "openai/gpt-5.1": "none low medium high",
    "openai/gpt-5": "minimal low medium high",
    "openai/gpt-5-pro": "high",
    "openai/o4-mini": "low medium high",
    "openai/gpt-4.1": "",
    "gemini/gemini-3.7-flash": "low medium high",
    "gemini/gemini-3.1-flash-lite": "minimal low medium high",
    "xai/grok-4.7": "low medium high xhigh",
    "xai/grok-4.6": "low medium high",
    "deepseek/deepseek-flash": "none low high max",
    "mistral/mistral-large-4": "none high",
    "together/moonshotai/Kimi-K3": "low medium high max",
    "qwen/qwen3.8-flash": "none high",
}
PRICE = Price(input=2.0, output=10.0, cached=0.2, cache_write=2.5)


def test_every_model_belongs_to_a_vendor_and_makes_sense():
    for name, facts in known_models().items():
        assert name.partition("/")[0] in VENDORS, name
        assert facts.window >= 8_000, name
        assert facts.output is None or facts.output < facts.window, name
        assert bool(facts.thinking) == bool(facts.efforts), name
        assert list(facts.efforts) == sorted(facts.efforts, key=LEVELS.index), name
        assert (facts.thinking == "adaptive" and "none" in facts.efforts) == bool(facts.thinking_off), name
        assert facts.price is None or facts.price.cached <= facts.price.input <= facts.price.output, name


def catalogued() -> Iterable[str]:
    return (name for name in VENDORS if name not in OWN_MODELS)


def test_every_vendor_has_models_and_a_source():
    makers = {name.partition("/")[0] for name in known_models()}
    assert set(WRITTEN["sources"]) == set(catalogued())
    assert {load_vendor(name).catalogue or name for name in catalogued()} == makers


def test_what_is_not_known_has_a_reason_and_no_reason_is_left_over():
    missing = {
        f"{name.partition('/')[0]} {fact}"
        for name, facts in known_models().items()
        for fact in ("output", "price")
        if getattr(facts, fact) is None
    }
    assert missing == set(WRITTEN["unknown"])


def test_the_catalogue_is_no_older_than_three_months():
    assert 0 <= (TODAY - date.fromisoformat(catalogue_date())).days <= OLDEST


def test_the_model_that_a_vendor_is_asked_for_is_known():
    for vendor in map(load_vendor, catalogued()):
        assert find(vendor, vendor.default_model) is not None, vendor.name


def test_every_model_that_the_manual_names_is_known():
    """A name without its host (`openai/gpt-oss-120b` in the table of vendors) is known where some host serves it."""
    named = {name for path in DOCS for name in NAMED.findall(path.read_text()) if name.split("/")[0] not in OWN_MODELS}
    served = {name.partition("/")[2] for name in known_models()}
    unknown = {
        name for name in named - served if find(load_vendor(name.partition("/")[0]), name.partition("/")[2]) is None
    }
    assert len(named) > 5
    assert unknown == set()


@pytest.mark.parametrize(("name", "levels"), LEVELS_OF.items())
def test_the_levels_of_reasoning_are_those_of_the_vendor(name: str, levels: str):
    assert known_models()[name].efforts == tuple(levels.split())


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("anthropic/claude-opus-4-9", "anthropic/claude-opus-4-8"),
        ("anthropic/claude-opus-6-20270101", "anthropic/claude-opus-5-5"),
        ("openai/gpt-6.2-sol", "openai/gpt-6.1-sol"),
        ("openai/gpt-6.1", "openai/gpt-5.6"),
        ("vertex/gemini-3.9-flash", "gemini/gemini-3.8-flash"),
        ("fireworks/accounts/fireworks/models/glm-5p4", "fireworks/glm-5p3"),
        ("kimi/kimi-k4", "kimi/kimi-k3"),
        ("mistral/mistral-large-5", "mistral/mistral-large-4"),
        ("bedrock/eu.anthropic.claude-opus-4-9", "bedrock/eu.anthropic.claude-opus-4-8"),
        ("openrouter/anthropic/claude-opus-5.6:nitro", "openrouter/anthropic/claude-opus-5.5"),
    ],
)
def test_a_newer_model_is_taken_for_the_latest_one_of_its_family_and_has_no_price(name: str, like: str):
    vendor, _, model = name.partition("/")
    assert find(load_vendor(vendor), model) is None
    facts = find_like(load_vendor(vendor), model)
    assert facts is not None
    assert (facts.like, facts.price) == (like, None)
    assert facts.efforts == known_models()[like].efforts


@pytest.mark.parametrize(
    "name", ["anthropic/claude-opus-4-1", "anthropic/claude-3-5-haiku-20241022", "openai/gpt-4", "openai/davinci"]
)
def test_an_older_model_and_another_family_are_taken_for_nothing(name: str):
    vendor, _, model = name.partition("/")
    assert find_like(load_vendor(vendor), model) is None


@pytest.mark.parametrize("name", ["claude-haiku-4-5", "claude-haiku-4-5-20251001", "claude-haiku-4-5:beta"])
def test_dates_and_variants_are_looked_past(name: str):
    facts = find(load_vendor("anthropic"), name)
    assert facts is not None
    assert facts.window == 200_000


def test_a_model_that_nobody_knows_is_not_found():
    assert find(load_vendor("anthropic"), "gpt-5.2") is None


def test_cached_tokens_cost_less_and_written_ones_more():
    usage = Usage(input=1_000_000, output=100_000, cached=600_000, cache_write=100_000)
    assert cost(PRICE, usage) == pytest.approx(0.3 * 2 + 0.6 * 0.2 + 0.1 * 2.5 + 0.1 * 10)


def test_unknown_is_not_zero():
    assert cost(None, Usage(input=5)) is None
    assert cost(PRICE, Usage(known=False)) is None
    assert cost(FREE, Usage(input=5)) == 0.0


def test_a_long_request_has_the_price_of_a_long_request():
    tiered = Price(input=1.0, output=1.0, cached=1.0, cache_write=1.0, long_from=100, long=PRICE)
    assert cost(tiered, Usage(input=100)) == pytest.approx(100e-6)
    assert cost(tiered, Usage(input=101)) == pytest.approx(202e-6)


@pytest.mark.parametrize(
    ("wanted", "supported", "level"),
    [
        ("high", ("low", "medium", "high"), "high"),
        ("xhigh", ("low", "high", "max"), "max"),
        ("max", ("low", "medium", "high"), "high"),
        ("minimal", ("low", "medium"), "low"),
        ("none", ("low", "medium"), "low"),
        ("medium", ("none",), "none"),
        ("low", ("none", "high"), "high"),
    ],
)
def test_the_nearest_level_is_taken_and_the_higher_of_two(wanted: str, supported: tuple[str, ...], level: str):
    assert nearest(wanted, supported) == level


def test_a_price_needs_both_sides_and_a_cache_costs_as_the_input_does():
    said = ModelOverride(price=PriceOverride(input=3.0))
    assert overridden(ModelFacts(), said).price is None
    assert overridden(ModelFacts(price=PRICE), said).price == Price(input=3, output=10, cached=3, cache_write=3)
