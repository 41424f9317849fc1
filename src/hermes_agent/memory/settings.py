"""The settings of memory."""

from __future__ import annotations

from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import setting

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

    memory_enabled: bool = setting(True, "Put the agent's notes (MEMORY.md) into the prompt of a new session.")
    user_profile_enabled: bool = setting(True, "Put the notes about the person (USER.md) into the prompt.")
    memory_char_limit: int = setting(2200, "Most characters of MEMORY.md.", least=100, most=100_000)
    user_char_limit: int = setting(1375, "Most characters of USER.md.", least=100, most=100_000)
    nudge_interval: int = setting(
        10, "Messages of yours in a session after which it is reviewed for notes; 0: never.", least=0
    )
    provider: Provider = setting("none", "The other memory, besides the notes.")
    provider_url: str = setting("", "Its address; empty: the service's own.")
    provider_space: str = setting("hermes", "Your name there: user, bank, container or workspace.")
