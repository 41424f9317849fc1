"""The settings of memory."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import about

Provider = Literal[
    "none",
    "holographic",
    "honcho",
    "mem0",
    "hindsight",
    "supermemory",
    "retaindb",
    "byterover",
    "openviking",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """What is remembered from one conversation to the next (section `memory` of the configuration)."""

    memory_enabled: bool = field(
        default=True, metadata={"doc": "Show the agent what it noted (MEMORY.md) when a conversation begins."}
    )
    user_profile_enabled: bool = field(
        default=True, metadata={"doc": "Show it what it noted about the person (USER.md)."}
    )
    memory_char_limit: int = field(default=2200, metadata=about("Characters of MEMORY.md.", least=100, most=100_000))
    user_char_limit: int = field(default=1375, metadata=about("Characters of USER.md.", least=100, most=100_000))
    nudge_interval: int = field(
        default=10,
        metadata=about("Messages of yours in a conversation after which it is reviewed for notes; 0: never.", least=0),
    )
    provider: Provider = field(default="none", metadata={"doc": "The one memory beside the notes."})
    provider_url: str = field(default="", metadata={"doc": "Where it is; empty means the service's own address."})
    provider_space: str = field(
        default="hermes", metadata={"doc": "What it calls you: user, bank, container or workspace."}
    )
