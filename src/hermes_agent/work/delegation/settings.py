"""Settings of delegation (section `delegation` of the configuration)."""

from __future__ import annotations

from enum import StrEnum

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import setting


class Isolation(StrEnum):
    """Where a child works: `task` in the folder of its parent, `worktree` in a git worktree of its own, `process` like
    `task` but in a process of its own."""

    TASK = "task"
    WORKTREE = "worktree"
    PROCESS = "process"


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationSettings:
    """Limits and habits of the agents that an agent starts."""

    max_turns: int = setting(50, "Model calls of one agent's run.", least=1)
    max_children: int = setting(3, "Agents of one session that run at a time; further ones wait.", least=1, most=100)
    max_depth: int = setting(2, "Levels below a conversation; on the last one nobody delegates.", least=1, most=5)
    model: str = setting("", "Model of the agents; empty: that of the session that starts them.")
    effort: str = setting("", "Reasoning effort of the agents; empty: `model.reasoning_effort`.")
    child_seconds: float = setting(3600.0, "Seconds from its start until an agent has to end.", least=1)
    max_summary_chars: int = setting(24_000, "Characters of an agent's own words in its report.", least=100)
    inherit_mcp: bool = setting(True, "Whether agents have the tools of MCP servers that their session has.")
    isolation: Isolation = setting(Isolation.TASK, "Where an agent works if the call does not say.")
    tell_background: bool = setting(True, "Whether a line tells the person that a background agent has ended.")
