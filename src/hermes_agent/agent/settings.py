"""The settings of a run."""

from __future__ import annotations

from dataclasses import field

from hermes_agent.core.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Turns, time and habits of a run (section `agent` of the configuration)."""

    max_turns: int = field(default=90, metadata={"doc": "Model calls in one run before it stops and can be continued."})
    max_seconds: float | None = field(
        default=None, metadata={"doc": "Seconds that one run may take; empty means no limit."}
    )
    max_parallel: int = field(default=8, metadata={"doc": "Tool calls of one turn that run in parallel."})
