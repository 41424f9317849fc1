"""The settings of skills."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSettings:
    """Skills (section `skills`)."""

    external_dirs: tuple[str, ...] = setting((), "More folders of skills; they are read and never written.")
    disabled: tuple[str, ...] = setting((), "Skills that are not offered, by name.")
    project: bool = setting(True, "Whether .hermes/skills and .agents/skills of the project are found.")
    guard_agent_created: bool = setting(
        False, "Whether to scan what the agent writes into skills, and refuse it on an alarm."
    )
    inline_shell_timeout: int = setting(
        10, "Seconds that each command inside a trusted skill may take.", least=1, most=120
    )
    creation_nudge_interval: int = setting(
        10, "Rounds of tools in a session after which it is reviewed for skills; 0: never.", least=0
    )
