"""The `model` section of the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """What a person may set about models. An empty text or None means "not set"."""

    default: str = field(
        default="",
        metadata={
            "doc": "The model to ask: vendor/model, e.g. anthropic/claude-opus-5-5. Empty: the first vendor with a key."
        },
    )
    provider: str = field(
        default="", metadata={"doc": "The vendor of a model name that does not begin with one. Empty: openrouter."}
    )
    base_url: str = field(
        default="", metadata={"doc": "Address of the server, e.g. http://127.0.0.1:8000/v1. Empty: the vendor's own."}
    )
    max_retries: int = field(default=3, metadata={"doc": "How often one failed model request is tried again."})
    stall_seconds: float = field(
        default=120.0,
        metadata={"doc": "A stream that brings no content for so long is given up; longer for high reasoning effort."},
    )
    reasoning_effort: str = field(
        default="medium",
        metadata={"doc": "none, minimal, low, medium, high, xhigh or max; the nearest that a model has is used."},
    )
    max_output: int | None = field(
        default=None, metadata={"doc": "Longest reply in tokens. Not set: the model's own limit."}
    )
    chain_responses: bool = field(
        default=False,
        metadata={
            "doc": "With models asked by the Responses API: let the provider keep the conversation (`store`) and send "
            "only what is new. Where it has lost it, everything is sent again."
        },
    )
    window: int | None = field(
        default=None,
        metadata={"doc": "Context window in tokens, where the catalogue is wrong or does not know the model."},
    )
    price_input: float | None = field(
        default=None, metadata={"doc": "US dollars per million input tokens, where the catalogue does not know them."}
    )
    price_output: float | None = field(
        default=None, metadata={"doc": "US dollars per million output tokens, where the catalogue does not know them."}
    )
