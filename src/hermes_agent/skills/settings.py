"""Settings of skills (section `skills`)."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSettings:
    """Settings of skills (section `skills`)."""

    external_dirs: tuple[str, ...] = setting((), "More folders of skills; Hermes only reads them.")
    disabled: tuple[str, ...] = setting((), "Names of skills to hide.")
    project: bool = setting(True, "Whether to use .hermes/skills and .agents/skills of the project.")
    guard_agent_created: bool = setting(
        False, "Whether to scan what the agent writes into skills, and refuse it on an alarm."
    )
    inline_shell_timeout: int = setting(
        10, "Seconds that each command inside a trusted skill may take.", least=1, most=120
    )
    creation_nudge_interval: int = setting(
        10, "Rounds of tools in a session after which it is reviewed for skills; 0: never.", least=0
    )
