"""All settings as one tree: each section is declared where it is used and joined here."""

from __future__ import annotations

from dataclasses import dataclass, field

from hermes_agent.agent.settings import AgentSettings
from hermes_agent.providers.settings import ModelOverride, ModelSettings
from hermes_agent.tools.settings import ApprovalSettings, TerminalSettings, ToolOutputSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where conversations are kept."""

    url: str = field(
        default="",
        metadata={
            "doc": "Database address; empty means hermes.db in the home, postgresql://... a server for many machines."
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The whole of `config.yaml`."""

    model: ModelSettings = field(default_factory=ModelSettings, metadata={"doc": "Which model is asked, and how."})
    models: dict[str, ModelOverride] = field(
        default_factory=dict,
        metadata={"doc": "What you know better than the catalogue, by model: `vendor/model`, with the same fields."},
    )
    agent: AgentSettings = field(default_factory=AgentSettings, metadata={"doc": "Limits and habits of a run."})
    terminal: TerminalSettings = field(default_factory=TerminalSettings, metadata={"doc": "Commands."})
    tool_output: ToolOutputSettings = field(
        default_factory=ToolOutputSettings, metadata={"doc": "Size of tool results."}
    )
    approvals: ApprovalSettings = field(
        default_factory=ApprovalSettings, metadata={"doc": "What needs a person's yes."}
    )
    store: StoreSettings = field(default_factory=StoreSettings, metadata={"doc": "Where conversations are kept."})
