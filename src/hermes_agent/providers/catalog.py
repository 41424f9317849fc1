"""Model catalogue: window, output limit, prices and abilities of known models, from the data file beside this one."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Usage
from hermes_agent.providers.settings import ModelOverride, PriceOverride
from hermes_agent.providers.vendor import LEVELS, Level, Vendor

UNKNOWN_WINDOW = 128_000
PER_MILLION = 1_000_000
_DATE = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")
_VERSION = re.compile(r"(?<=[/-])([a-zA-Z]?)(\d+)(?:[.p](\d+))?(?=-|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens. `long`, where set, is the price of a request with more than `long_from` input
    tokens."""

    input: float
    output: float
    cached: float
    cache_write: float
    long_from: int = 0
    long: Price | None = None

    def at(self, tokens: int) -> Price:
        """The price of a request with so many input tokens."""
        return self.long if self.long is not None and tokens > self.long_from else self

    def kept_an_hour(self) -> Price:
        """The price with prompts cached for an hour instead of five minutes: a cache write costs twice the input
        price (https://platform.claude.com/docs/en/build-with-claude/prompt-caching)."""
        long = None if self.long is None else self.long.kept_an_hour()
        return replace(self, cache_write=2 * self.input, long=long)


FREE = Price(input=0.0, output=0.0, cached=0.0, cache_write=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Facts about one model.

    `dialect` is the protocol that it needs, where that is not its vendor's. `window` counts input and output
    together, `output` is the longest reply; None: unknown. `thinking` is how reasoning is controlled: `effort` (a
    level by name), `switch` (on, or off at the level `none`), `adaptive` (Anthropic's, with a level), `budget`
    (Anthropic's and Gemini's, in tokens), or empty: not at all. `efforts` are its levels, `tool_efforts` the
    fewer ones allowed in a request with tools, `reasoning_effort` the level that a person set for it;
    `thinking_off` is the type that turns adaptive thinking off. `parallel` False: it requests one tool at a time.
    `result_media`: a tool's result may contain pictures and documents (Gemini). `cache_marks`: a request may mark
    what to cache (Bedrock). `prefill`: whether the model continues a given beginning of its reply; None: as its
    vendor does. `like` names the known model whose facts are used, where this one is not in the catalogue.
    """

    like: str = ""
    dialect: str = ""
    window: int = UNKNOWN_WINDOW
    output: int | None = None
    price: Price | None = None
    thinking: Literal["", "effort", "switch", "adaptive", "budget"] = ""
    efforts: tuple[Level, ...] = ()
    tool_efforts: tuple[Level, ...] | None = None
    reasoning_effort: Level | None = None
    thinking_off: Literal["", "disabled", "between_tools"] = ""
    images: bool = False
    files: bool = False
    tools: bool = True
    prefill: bool | None = None
    parallel: bool = True
    result_media: bool = False
    cache_marks: bool = False


class _Catalogue(msgspec.Struct):
    as_of: str
    models: dict[str, dict[str, Any]]


UNKNOWN = ModelFacts(images=True, files=True)


def catalogue_date() -> str:
    """The day on which the catalogue was compared with its sources, as `YYYY-MM-DD`."""
    return _catalogue().as_of


@cache
def known_models() -> dict[str, ModelFacts]:
    """Every model of the catalogue by `vendor/model`. An entry with `like` inherits the facts of the named model
    above it."""
    entries: dict[str, dict[str, Any]] = {}
    for name, entry in _catalogue().models.items():
        own = dict(entry)
        like = own.pop("like", None)
        entries[name] = own if like is None else {**entries[like], **own}
    return msgspec.convert(entries, type=dict[str, ModelFacts])


def find(vendor: Vendor, model: str) -> ModelFacts | None:
    """The facts of a vendor's model; ignores a date at the end of the name, a `:variant` and the vendor's own
    prefix. Where a vendor serves another's models, that one's facts."""
    short = model.removeprefix(vendor.model_prefix)
    plain = short.partition(":")[0]
    for maker in (vendor.name, vendor.catalogue):
        for name in (short, plain, _DATE.sub("", plain)):
            facts = known_models().get(f"{maker}/{name}")
            if facts is not None:
                return facts
    return None


def find_like(vendor: Vendor, model: str) -> ModelFacts | None:
    """The facts, without price, of the latest earlier model whose name differs only in its version (`gpt-5.5` for
    `gpt-5.9`); None where there is none: a model older than all known ones may be of another kind."""
    family, version = _lineage(_DATE.sub("", model.removeprefix(vendor.model_prefix).partition(":")[0]))
    earlier: dict[tuple[int, ...], str] = {}
    for name in known_models():
        maker, _, known = name.partition("/")
        if maker in {vendor.name, vendor.catalogue} and _lineage(known)[0] == family:
            earlier.setdefault(_lineage(known)[1], name)
    best = max((each for each in earlier if each <= version), default=()) if version else ()
    return replace(known_models()[earlier[best]], price=None, like=earlier[best]) if best else None


def _lineage(model: str) -> tuple[str, tuple[int, ...]]:
    """A model's name without the numbers of its version, and those numbers."""
    numbers = [int(number) for found in _VERSION.finditer(f"/{model}") for number in found.groups()[1:] if number]
    words = _VERSION.sub(r"\1", f"/{model}").split("-")
    return "-".join(word for word in words if word), tuple(numbers)


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


def overridden(facts: ModelFacts, known: ModelOverride) -> ModelFacts:
    """The facts with a person's corrections; unknown reasoning levels are left out."""
    said = {each.name: getattr(known, each.name) for each in fields(known) if getattr(known, each.name) is not None}
    for name in ("efforts", "tool_efforts"):
        if name in said:
            said[name] = tuple(level for level in LEVELS if level in said[name])
    if known.price is not None:
        said["price"] = _price(facts.price, known.price)
    return replace(facts, **said)


def _price(before: Price | None, said: PriceOverride) -> Price | None:
    """The price as far as it is known: without both input and output there is none; a cache costs as the input does
    where nobody says otherwise."""
    paid = said.input if said.input is not None else before.input if before else None
    written = said.output if said.output is not None else before.output if before else None
    if paid is None or written is None:
        return None
    return Price(
        input=paid,
        output=written,
        cached=paid if said.cached is None else said.cached,
        cache_write=paid if said.cache_write is None else said.cache_write,
    )


def nearest(level: str, supported: tuple[Level, ...]) -> Level:
    """The supported level nearest to the wanted one, the higher of two equally near.

    Raises `ValueError` where `level` is none of `LEVELS` or nothing is supported.
    """
    wanted = LEVELS.index(level)
    return min(supported, key=lambda one: (abs(LEVELS.index(one) - wanted), -LEVELS.index(one)))


@cache
def _catalogue() -> _Catalogue:
    return msgspec.json.decode(Path(__file__).with_name("catalog.json").read_bytes(), type=_Catalogue)
