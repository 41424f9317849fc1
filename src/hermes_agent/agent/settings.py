"""The settings of a run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Limits and habits of a run (section `agent` of the configuration)."""

    max_turns: int = field(default=90, metadata={"doc": "Model calls in one run before it stops and can be continued."})
    max_seconds: float | None = field(
        default=None, metadata={"doc": "Seconds that one run may take; empty means no limit."}
    )
    max_money: float | None = field(
        default=None, metadata={"doc": "US dollars that one run may cost; empty means no limit."}
    )
    max_tokens: int | None = field(
        default=None, metadata={"doc": "Tokens, in and out, that one run may use; empty: no limit."}
    )
    max_parallel: int = field(default=8, metadata={"doc": "Tool calls of one turn that run side by side."})
