"""The settings of the guardrails."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailSettings:
    """When a run goes round in circles (section `guardrails`)."""

    warnings: bool = setting(True, "Whether to add guidance to such results.")
    hard_stop: bool = setting(False, "Whether to refuse such calls, and stop the run.")
    warn_repeated_failures: int = setting(2, "Failures of one exact call before guidance.", least=1)
    warn_tool_failures: int = setting(3, "Failures of one tool in a row before guidance.", least=1)
    warn_same_results: int = setting(2, "Equal results of one exact reading call before guidance.", least=1)
    stop_repeated_failures: int = setting(5, "Failures of one exact call before it is refused.", least=1)
    stop_tool_failures: int = setting(8, "Failures of one tool in a row before the run stops.", least=1)
    stop_same_results: int = setting(5, "Equal results of one exact reading call before it is refused.", least=1)
