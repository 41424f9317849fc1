"""Models as data."""

import pytest

from hermes_agent.core.model import Usage
from hermes_agent.providers.catalog import FREE, ModelFacts, Price, cost, find, known_models, nearest, overridden
from hermes_agent.providers.route import load_vendor
from hermes_agent.providers.settings import ModelOverride, PriceOverride, TierOverride
from hermes_agent.providers.vendor import LEVELS
from hermes_agent.providers.vendors import VENDORS

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


def test_a_long_request_may_have_a_price_of_its_own():
    price = PriceOverride(input=1, output=2, cached=0.1, long_from=100, long=TierOverride(input=4, output=8))
    known = overridden(ModelFacts(), ModelOverride(price=price)).price
    assert known is not None
    assert (known.at(100).cached, known.at(101)) == (0.1, Price(input=4, output=8, cached=4, cache_write=4))
