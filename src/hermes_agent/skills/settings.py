"""The settings of skills."""

from __future__ import annotations

from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import about


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSettings:
    """Skills (section `skills`)."""

    external_dirs: tuple[str, ...] = field(
        default=(), metadata={"doc": "More folders of skills; they are read and never written."}
    )
    disabled: tuple[str, ...] = field(default=(), metadata={"doc": "Skills that are not offered, by name."})
    project: bool = field(
        default=True, metadata={"doc": "Whether .hermes/skills and .agents/skills of the project are found."}
    )
    guard_agent_created: bool = field(
        default=False,
        metadata={"doc": "Whether what the agent writes into skills is scanned, and refused where it alarms."},
    )
    inline_shell_timeout: int = field(
        default=10,
        metadata=about("Seconds that each command inside a trusted skill may take.", least=1, most=120),
    )
    creation_nudge_interval: int = field(
        default=10,
        metadata=about("Rounds of tools in a conversation after which it is reviewed for skills; 0: never.", least=0),
    )
