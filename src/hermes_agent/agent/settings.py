"""Settings of runs and of compaction (sections `agent` and `compaction` of the configuration)."""

from __future__ import annotations

from dataclasses import field
from typing import TypeVar

from hermes_agent.core.dataclass import dataclass

T = TypeVar("T")


def _setting(default: T, doc: str, **bounds: float) -> T:
    """As `host/schema.py` `setting`, which this package may not import."""
    return field(default=default, metadata={"doc": doc, **bounds})


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Turn and time limits and habits of a run (section `agent` of the configuration)."""

    max_turns: int = _setting(90, "Model calls in one run before it stops and can be continued.", least=1)
    max_seconds: float | None = _setting(None, "Seconds that one run may take; empty means no limit.", least=0)
    max_parallel: int = _setting(8, "Tool calls of one turn that run in parallel.", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """When and how far a conversation is shortened (section `compaction` of the configuration)."""

    enabled: bool = _setting(True, "Compact the conversation before it no longer fits the window.")
    threshold: float = _setting(
        0.75, "Share of the window (less the room for a reply) at which compaction starts.", least=0, most=1
    )
    target: float = _setting(0.4, "Share of the window that compaction aims for.", least=0, most=1)
    tail: float = _setting(
        0.25, "Share of the window for the latest messages, which stay word for word.", least=0, most=1
    )
    seconds: float = _setting(90.0, "How long a model may take to write the summary.", least=0)
