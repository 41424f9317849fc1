"""What is known of models: window, output limit, prices and abilities, as data shipped beside this file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from hermes_agent.core.model import Usage
from hermes_agent.providers.vendor import LEVELS, Level

UNKNOWN_WINDOW = 128_000
PER_MILLION = 1_000_000
_DATE = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens. Where `long` is set, a request with more than `long_from` input tokens costs
    that."""

    input: float
    output: float
    cached: float
    cache_write: float
    long_from: int = 0
    long: Price | None = None

    def at(self, tokens: int) -> Price:
        """The price of a request with so many input tokens."""
        return self.long if self.long is not None and tokens > self.long_from else self


FREE = Price(input=0.0, output=0.0, cached=0.0, cache_write=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What is known of one model.

    `dialect` is the protocol that it wants to be asked in, where that is not its vendor's.
    `window` counts input and output together, `output` is the longest reply; None: not known. `thinking` is how its
    reasoning is steered: `effort` (a level by name), `adaptive` (Anthropic's, with a level), `budget` (Anthropic's, in
    tokens), or empty: not at all. `efforts` are its levels, `tool_efforts` those that it takes in a request with tools
    where they are fewer; `thinking_off` is the type that turns adaptive thinking off.
    """

    dialect: str = ""
    window: int = UNKNOWN_WINDOW
    output: int | None = None
    price: Price | None = None
    thinking: Literal["", "effort", "adaptive", "budget"] = ""
    efforts: tuple[Level, ...] = ()
    tool_efforts: tuple[Level, ...] | None = None
    thinking_off: Literal["", "disabled", "between_tools"] = ""
    images: bool = False
    tools: bool = True


class _Catalogue(msgspec.Struct):
    as_of: str
    models: dict[str, ModelFacts]


UNKNOWN = ModelFacts(images=True)


def known_models() -> dict[str, ModelFacts]:
    """Every model of the catalogue by `vendor/model`."""
    return _catalogue().models


def find(vendor: str, model: str) -> ModelFacts | None:
    """What is known of a vendor's model; a date at the end of the name and a `:variant` are looked past."""
    plain = model.partition(":")[0]
    for name in (model, plain, _DATE.sub("", plain)):
        facts = known_models().get(f"{vendor}/{name}")
        if facts is not None:
            return facts
    return None


def cost(price: Price | None, usage: Usage) -> float | None:
    """US dollars of a call; None where the price or the usage is unknown: unknown is not zero."""
    if price is None or not usage.known:
        return None
    rate = price.at(usage.input)
    fresh = max(0, usage.input - usage.cached - usage.cache_write)
    dollars = (
        fresh * rate.input
        + usage.cached * rate.cached
        + usage.cache_write * rate.cache_write
        + usage.output * rate.output
    )
    return dollars / PER_MILLION


def nearest(level: str, supported: tuple[Level, ...]) -> Level:
    """The supported level that is nearest to the wanted one, the higher of two that are equally near.

    Raises `ValueError` where `level` is none of `LEVELS` or nothing is supported.
    """
    wanted = LEVELS.index(level)
    return min(supported, key=lambda one: (abs(LEVELS.index(one) - wanted), -LEVELS.index(one)))


@cache
def _catalogue() -> _Catalogue:
    return msgspec.json.decode(Path(__file__).with_name("catalog.json").read_bytes(), type=_Catalogue)
