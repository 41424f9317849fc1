"""The settings of the guardrails."""

from __future__ import annotations

from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import about


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailSettings:
    """When a run goes round in circles (section `guardrails`)."""

    warnings: bool = field(default=True, metadata={"doc": "Whether guidance is put behind such results."})
    hard_stop: bool = field(
        default=False, metadata={"doc": "Whether such calls are answered without being run, and the run is stopped."}
    )
    warn_repeated_failures: int = field(
        default=2, metadata=about("Failures of one exact call before guidance.", least=1)
    )
    warn_tool_failures: int = field(
        default=3, metadata=about("Failures of one tool in a row before guidance.", least=1)
    )
    warn_same_results: int = field(
        default=2, metadata=about("Equal results of one exact reading call before guidance.", least=1)
    )
    stop_repeated_failures: int = field(
        default=5, metadata=about("Failures of one exact call before it is not run any more.", least=1)
    )
    stop_tool_failures: int = field(
        default=8, metadata=about("Failures of one tool in a row before the run is stopped.", least=1)
    )
    stop_same_results: int = field(
        default=5, metadata=about("Equal results of one exact reading call before it is not run any more.", least=1)
    )
