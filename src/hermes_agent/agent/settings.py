"""Settings of runs and of compaction (sections `agent` and `compaction` of the configuration)."""

from __future__ import annotations

from dataclasses import field

from hermes_agent.core.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Turn and time limits and habits of a run (section `agent` of the configuration)."""

    max_turns: int = field(
        default=90, metadata={"doc": "Model calls in one run before it stops and can be continued.", "least": 1}
    )
    max_seconds: float | None = field(
        default=None, metadata={"doc": "Seconds that one run may take; empty means no limit.", "least": 0}
    )
    max_parallel: int = field(default=8, metadata={"doc": "Tool calls of one turn that run in parallel.", "least": 1})


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """When and how far a conversation is shortened (section `compaction` of the configuration)."""

    enabled: bool = field(
        default=True, metadata={"doc": "Compact the conversation before it no longer fits the window."}
    )
    threshold: float = field(
        default=0.75,
        metadata={
            "doc": "Share of the window (less the room for a reply) at which compaction starts.",
            "least": 0,
            "most": 1,
        },
    )
    target: float = field(
        default=0.4, metadata={"doc": "Share of the window that compaction aims for.", "least": 0, "most": 1}
    )
    tail: float = field(
        default=0.25,
        metadata={
            "doc": "Share of the window for the latest messages, which stay word for word.",
            "least": 0,
            "most": 1,
        },
    )
    seconds: float = field(
        default=90.0, metadata={"doc": "How long a model may take to write the summary.", "least": 0}
    )
