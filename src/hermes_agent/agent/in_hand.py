"""What a run has in hand: the calls under way, and which of them wait for a person."""

from __future__ import annotations

from dataclasses import field

from hermes_agent.core.dataclass import dataclass


@dataclass(slots=True, kw_only=True)
class InHand:
    """`begun` are the calls under way, each with the call that makes it (empty: the model); `asking` are those that
    wait for a person. `told` is what the store was told last of `waits`."""

    begun: dict[str, str] = field(default_factory=dict)
    asking: set[str] = field(default_factory=set)
    told: bool = False

    @property
    def waits(self) -> bool:
        """Whether nothing happens until a person answers."""
        return bool(self.asking) and not self.begun.keys() - self.asking - set(self.begun.values())
