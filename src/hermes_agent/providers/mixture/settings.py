"""The section `moa` of the configuration: mixtures by name."""

from __future__ import annotations

from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import about


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureSettings:
    """One mixture, which is asked as `moa/NAME`."""

    members: tuple[str, ...] = field(
        default=(), metadata={"doc": "Models that are asked first, side by side and without tools: vendor/model."}
    )
    aggregator: str = field(
        default="",
        metadata={"doc": "The model that answers, with what the members said before it. Empty: the first member."},
    )
    seconds: float = field(default=60.0, metadata=about("How long the members are waited for.", least=1))
    every_turn: bool = field(
        default=False,
        metadata={"doc": "Ask the members before every turn, instead of once for each message of the person."},
    )
    max_output: int = field(default=4_000, metadata=about("Longest answer of a member in tokens.", least=16))
