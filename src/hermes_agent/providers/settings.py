"""Settings of models: the sections `model`, `models`, `credentials` and `moa` of the configuration."""

from __future__ import annotations

from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import setting
from hermes_agent.providers.vendor import USUAL_LEVEL, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Settings of model requests (section `model`). An empty text or None means "not set"."""

    default: str = setting(
        "", "The model to ask: vendor/model, e.g. anthropic/claude-opus-5-5. Empty: the first vendor with a key."
    )
    provider: str = setting("", "The vendor of a model name that does not begin with one. Empty: openrouter.")
    base_url: str = setting(
        "", "Address of the server, e.g. http://127.0.0.1:8000/v1. Empty: the vendor's own.", form="address"
    )
    fallbacks: tuple[str, ...] = setting((), "Models to use, in this order, while those before fail: vendor/model.")
    cool_down: float = setting(
        60.0, "Seconds after which Hermes tries a failed model again instead of its fallbacks.", least=0
    )
    cache_ttl: Literal["5m", "1h"] = setting(
        "5m", "How long the vendor caches a prompt: 1h costs more to write and survives long pauses."
    )
    region: str = setting("", "Region of the vendor, if it has several. Empty: its usual one.")
    max_retries: int = setting(3, "Retries of one failed model request.", least=0)
    stall_seconds: float = setting(
        120.0,
        "Seconds without content after which a stream is given up; longer for high reasoning effort.",
        least=0.001,
    )
    reasoning_effort: Level = setting(USUAL_LEVEL, "How much a model reasons; the nearest level that it has is used.")
    max_output: int | None = setting(None, "Longest reply in tokens. Not set: the model's own limit.", least=1)
    window: int | None = setting(
        None, "Context window in tokens, where the catalogue is wrong or does not know the model.", least=1
    )
    price_input: float | None = setting(
        None, "US dollars per million input tokens, where the catalogue does not know them.", least=0
    )
    price_output: float | None = setting(
        None, "US dollars per million output tokens, where the catalogue does not know them.", least=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialSettings:
    """The keys of one vendor, by name; the values are in `.env` or the environment."""

    names: tuple[str, ...] = setting(
        (), "Names of the keys, in order. Not set: the vendor's own name, then NAME_2, NAME_3, ..."
    )
    strategy: Literal["fill_first", "round_robin", "least_used"] = setting(
        "fill_first", "The first key that may be used; the one unused for longest; or the least used in a day."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOverride:
    """A model's price, in place of the catalogue's; also of its long requests."""

    input: float | None = setting(None, "US dollars per million input tokens.", least=0)
    output: float | None = setting(None, "US dollars per million output tokens.", least=0)
    cached: float | None = setting(None, "Tokens read from a cache. Not set: as input.", least=0)
    cache_write: float | None = setting(None, "Tokens written to a cache. Not set: as input.", least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOverride:
    """A person's corrections to the catalogue's facts about the model `vendor/model`."""

    window: int | None = setting(None, "Context window in tokens, input and output.", least=256)
    output: int | None = setting(None, "Longest reply in tokens.", least=16)
    price: PriceOverride | None = setting(None, "What it costs.")
    thinking: Literal["", "effort", "switch", "adaptive", "budget"] | None = setting(
        None, "How its reasoning is steered; empty: not at all."
    )
    reasoning_effort: Level | None = setting(None, "Its level instead of `model.reasoning_effort`.")
    efforts: tuple[str, ...] | None = setting(
        None, "Its levels of reasoning, of none, minimal, low, medium, high, xhigh, max."
    )
    tool_efforts: tuple[str, ...] | None = setting(None, "Its levels in a request with tools, if they are fewer.")
    images: bool | None = setting(None, "Whether it sees pictures.")
    files: bool | None = setting(None, "Whether it reads documents such as PDF.")
    tools: bool | None = setting(None, "Whether it calls tools.")
    parallel: bool | None = setting(None, "Whether it asks for several tools at a time.")


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureSettings:
    """Settings of one mixture, whose model name is `moa/NAME`."""

    members: tuple[str, ...] = setting((), "Models to ask first, in parallel and without tools: vendor/model.")
    aggregator: str = setting(
        "", "The model that answers, with what the members said before it. Empty: the first member."
    )
    seconds: float = setting(60.0, "How long to wait for the members.", least=1)
    every_turn: bool = setting(
        False, "Ask the members before every turn, instead of once for each message of the person."
    )
    max_output: int = setting(4_000, "Longest answer of a member in tokens.", least=16)
