"""The settings of compaction."""

from __future__ import annotations

from dataclasses import field

from hermes_agent.core.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """When and how far a conversation is shortened (section `compaction` of the configuration)."""

    enabled: bool = field(default=True, metadata={"doc": "Shorten what the model is shown before it no longer fits."})
    threshold: float = field(
        default=0.75, metadata={"doc": "Share of the window (less the room for a reply) at which it is shortened."}
    )
    target: float = field(
        default=0.4, metadata={"doc": "Share of the window that it is shortened to, where it can be."}
    )
    tail: float = field(default=0.25, metadata={"doc": "Share of the window whose latest messages stay word for word."})
    seconds: float = field(default=90.0, metadata={"doc": "How long a model may take to write the summary."})
