"""All settings as one tree: each section is declared where it is used and joined here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields

from hermes_agent.agent.compaction.settings import CompactionSettings
from hermes_agent.agent.settings import AgentSettings
from hermes_agent.app.auxiliary.settings import AuxiliarySettings
from hermes_agent.app.hooks.settings import HookSettings
from hermes_agent.app.service.settings import GatewaySettings, PrivacySettings
from hermes_agent.app.serving.settings import ApiSettings, WebhookSettings
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.spending import Limit, Rules, Scope, UnknownPrice, limit_of
from hermes_agent.host.schema import about
from hermes_agent.learning.settings import CuratorSettings, LearningSettings
from hermes_agent.memory.settings import MemorySettings
from hermes_agent.providers.mixture.settings import MixtureSettings
from hermes_agent.providers.settings import CredentialSettings, ModelOverride, ModelSettings
from hermes_agent.skills.settings import SkillSettings
from hermes_agent.tools.checkpoints.settings import CheckpointSettings
from hermes_agent.tools.guardrails.settings import GuardrailSettings
from hermes_agent.tools.settings import (
    ApprovalSettings,
    CodeSettings,
    SecretUse,
    TerminalSettings,
    ToolOutputSettings,
)
from hermes_agent.tools.surfaces import SurfaceTools
from hermes_agent.tools.web.settings import WebSettings


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
class LimitSettings:
    """The most that may be used within one scope."""

    money: float | None = field(default=None, metadata=about("US dollars; empty means no limit.", least=0))
    tokens: int | None = field(default=None, metadata=about("Tokens, in and out; empty means no limit.", least=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSettings:
    """What models may cost."""

    call: LimitSettings = field(default_factory=LimitSettings, metadata={"doc": "One model call."})
    run: LimitSettings = field(default_factory=LimitSettings, metadata={"doc": "One run, from a message to its reply."})
    job: LimitSettings = field(default_factory=LimitSettings, metadata={"doc": "All runs of one job."})
    principal: LimitSettings = field(
        default_factory=LimitSettings, metadata={"doc": "One person, each calendar day of this machine's time zone."}
    )
    day: LimitSettings = field(default_factory=LimitSettings, metadata={"doc": "Everybody together, each such day."})
    unknown_price: UnknownPrice = field(
        default=UnknownPrice.REFUSE,
        metadata={
            "doc": "A model of unknown price where money is limited: refuse asks it nothing, allow leaves it uncounted."
        },
    )

    @property
    def limits(self) -> list[Limit]:
        """The limits that are set."""
        given = {Scope(entry.name): getattr(self, entry.name) for entry in fields(self) if entry.name in set(Scope)}
        found = [limit_of(scope, each.money, each.tokens) for scope, each in given.items()]
        return [limit for limit in found if limit is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The whole of `config.yaml`."""

    model: ModelSettings = field(default_factory=ModelSettings, metadata={"doc": "Which model is asked, and how."})
    credentials: dict[str, CredentialSettings] = field(
        default_factory=dict, metadata={"doc": "Several keys for one vendor, by the vendor's name."}
    )
    models: dict[str, ModelOverride] = field(
        default_factory=dict,
        metadata={"doc": "What you know better than the catalogue, by model: `vendor/model`, with the same fields."},
    )
    moa: dict[str, MixtureSettings] = field(
        default_factory=dict,
        metadata={"doc": "Mixtures, asked as `moa/NAME`: several models are asked, and one answers."},
    )
    auxiliary: AuxiliarySettings = field(
        default_factory=AuxiliarySettings,
        metadata={"doc": "Models beside the one that answers; `model` empty in one of these: the one that answers."},
    )
    agent: AgentSettings = field(default_factory=AgentSettings, metadata={"doc": "Turns, time and habits of a run."})
    compaction: CompactionSettings = field(
        default_factory=CompactionSettings, metadata={"doc": "How a long conversation is kept within the window."}
    )
    budget: BudgetSettings = field(default_factory=BudgetSettings, metadata={"doc": "Limits of money and tokens."})
    terminal: TerminalSettings = field(default_factory=TerminalSettings, metadata={"doc": "Commands."})
    code: CodeSettings = field(default_factory=CodeSettings, metadata={"doc": "Programs that call tools."})
    checkpoints: CheckpointSettings = field(
        default_factory=CheckpointSettings, metadata={"doc": "How files were before the agent changed them."}
    )
    web: WebSettings = field(default_factory=WebSettings, metadata={"doc": "The web."})
    tool_output: ToolOutputSettings = field(
        default_factory=ToolOutputSettings, metadata={"doc": "Size of tool results."}
    )
    approvals: ApprovalSettings = field(
        default_factory=ApprovalSettings, metadata={"doc": "What needs a person's yes."}
    )
    memory: MemorySettings = field(
        default_factory=MemorySettings, metadata={"doc": "What is remembered from one conversation to the next."}
    )
    store: StoreSettings = field(default_factory=StoreSettings, metadata={"doc": "Where conversations are kept."})
    guardrails: GuardrailSettings = field(
        default_factory=GuardrailSettings, metadata={"doc": "When a run goes round in circles."}
    )
    skills: SkillSettings = field(default_factory=SkillSettings, metadata={"doc": "Skills."})
    learning: LearningSettings = field(
        default_factory=LearningSettings, metadata={"doc": "What is learned from conversations."}
    )
    curator: CuratorSettings = field(
        default_factory=CuratorSettings, metadata={"doc": "The upkeep of skills that the agent made."}
    )
    tools: Mapping[str, SurfaceTools] = field(
        default_factory=dict, metadata={"doc": "Toolsets by surface: cli, library, webhook, guest, ..."}
    )
    gateway: GatewaySettings = field(default_factory=GatewaySettings, metadata={"doc": "Chat platforms."})
    privacy: PrivacySettings = field(
        default_factory=PrivacySettings, metadata={"doc": "What the model and the logs are not told."}
    )
    hooks: Mapping[str, HookSettings] = field(
        default_factory=dict, metadata={"doc": "Programs of yours that are told of what happens, by name."}
    )
    api: ApiSettings = field(default_factory=ApiSettings, metadata={"doc": "The API server."})
    webhooks: WebhookSettings = field(default_factory=WebhookSettings, metadata={"doc": "Webhook routes."})
    secrets: Mapping[str, SecretUse] = field(
        default_factory=dict, metadata={"doc": "Secrets that tools may name, and where each may go."}
    )

    @property
    def rules(self) -> Rules:
        """The limits in force."""
        limits = (*self.budget.limits, *self.auxiliary.limits)
        return Rules(limits=limits, unknown_price=self.budget.unknown_price)
