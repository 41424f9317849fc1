"""The section `moa` of the configuration: mixtures by name."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureSettings:
    """One mixture, which is asked as `moa/NAME`."""

    members: tuple[str, ...] = setting((), "Models that are asked first, side by side and without tools: vendor/model.")
    aggregator: str = setting(
        "", "The model that answers, with what the members said before it. Empty: the first member."
    )
    seconds: float = setting(60.0, "How long the members are waited for.", least=1)
    every_turn: bool = setting(
        False, "Ask the members before every turn, instead of once for each message of the person."
    )
    max_output: int = setting(4_000, "Longest answer of a member in tokens.", least=16)
