"""All settings as one tree: each section is declared where it is used and joined here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from hermes_agent.agent.compaction.settings import CompactionSettings
from hermes_agent.agent.settings import AgentSettings
from hermes_agent.app.api_settings import ApiSettings, WebhookSettings
from hermes_agent.app.auxiliary.settings import AuxiliarySettings
from hermes_agent.app.chats.settings import GatewaySettings, PrivacySettings
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.spending import Limit, Rules, Scope, UnknownPrice, limit_of
from hermes_agent.host.schema import section, setting
from hermes_agent.learning.settings import CuratorSettings, LearningSettings
from hermes_agent.memory.settings import MemorySettings
from hermes_agent.providers.settings import CredentialSettings, MixtureSettings, ModelOverride, ModelSettings
from hermes_agent.skills.settings import SkillSettings
from hermes_agent.tools.settings import (
    ApprovalSettings,
    CheckpointSettings,
    CodeSettings,
    GuardrailSettings,
    SecretUse,
    TerminalSettings,
    ToolOutputSettings,
    WebSettings,
)
from hermes_agent.tools.surfaces import SurfaceTools


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSettings:
    """One hook (section `hooks.NAME`)."""

    on: tuple[str, ...] = setting(
        (), "Events: gateway:start, message:received, run:start, run:end, tool:before, tool:after, reply:before."
    )
    command: str = setting("", "The command to run; it reads the event as JSON on standard input.")
    python: str = setting("", "A Python file with a function `handle(event)`, instead.")
    tools: str = setting(".*", "Pattern of the tools whose calls run it.")
    seconds: float = setting(10.0, "How long it may take.", least=0.1, most=600)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """The database."""

    url: str = setting(
        "", "Database address. Empty: hermes.db in the home; postgresql://...: a server for several machines."
    )
    shared: bool = setting(
        False, "Whether several homes of one household may use that database; otherwise a second home is refused."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """The most that may be used within one scope."""

    money: float | None = setting(None, "US dollars; empty means no limit.", least=0)
    tokens: int | None = setting(None, "Tokens, in and out; empty means no limit.", least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSettings:
    """What models may cost."""

    call: LimitSettings = section(LimitSettings, "One model call.")
    run: LimitSettings = section(LimitSettings, "One run, from a message to its reply.")
    job: LimitSettings = section(LimitSettings, "All runs of one job.")
    principal: LimitSettings = section(LimitSettings, "One person, each calendar day of this machine's time zone.")
    day: LimitSettings = section(LimitSettings, "All people together, each such day.")
    unknown_price: UnknownPrice = setting(
        UnknownPrice.REFUSE,
        "If money is limited and a model's price is unknown: refuse stops the call, allow does not count its cost.",
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

    model: ModelSettings = section(ModelSettings, "The default model, and how to ask it.")
    credentials: dict[str, CredentialSettings] = section(dict, "Several keys for one vendor, by the vendor's name.")
    models: dict[str, ModelOverride] = section(
        dict, "Corrections to the catalogue, by model: `vendor/model`, with the same fields."
    )
    moa: dict[str, MixtureSettings] = section(
        dict, "Mixtures, asked as `moa/NAME`: several models are asked, and one answers."
    )
    auxiliary: AuxiliarySettings = section(
        AuxiliarySettings, "Background models, by purpose; an empty `model`: the session's model."
    )
    agent: AgentSettings = section(AgentSettings, "Turns, time and parallel calls of a run.")
    compaction: CompactionSettings = section(
        CompactionSettings, "Compaction, which keeps a long conversation within the window."
    )
    budget: BudgetSettings = section(BudgetSettings, "Limits of money and tokens.")
    terminal: TerminalSettings = section(TerminalSettings, "Commands.")
    code: CodeSettings = section(CodeSettings, "Programs that call tools.")
    checkpoints: CheckpointSettings = section(CheckpointSettings, "Checkpoints of files before the agent changes them.")
    web: WebSettings = section(WebSettings, "The web.")
    tool_output: ToolOutputSettings = section(ToolOutputSettings, "Size of tool results.")
    approvals: ApprovalSettings = section(ApprovalSettings, "What needs a person's approval.")
    memory: MemorySettings = section(MemorySettings, "Notes and memory from one session to the next.")
    store: StoreSettings = section(StoreSettings, "The database.")
    guardrails: GuardrailSettings = section(GuardrailSettings, "What stops a run that repeats itself.")
    skills: SkillSettings = section(SkillSettings, "Skills.")
    learning: LearningSettings = section(LearningSettings, "Reviews that learn from conversations.")
    curator: CuratorSettings = section(CuratorSettings, "The curator of the skills that the agent made.")
    tools: Mapping[str, SurfaceTools] = section(dict, "Toolsets by surface: cli, library, webhook, guest, ...")
    gateway: GatewaySettings = section(GatewaySettings, "Chat platforms.")
    privacy: PrivacySettings = section(PrivacySettings, "What to hide from the model and the logs.")
    hooks: Mapping[str, HookSettings] = section(dict, "Your programs that run on events, by name.")
    api: ApiSettings = section(ApiSettings, "The API server.")
    webhooks: WebhookSettings = section(WebhookSettings, "Webhook routes.")
    secrets: Mapping[str, SecretUse] = section(dict, "Secrets that tools may name, and where each may go.")

    @property
    def rules(self) -> Rules:
        """The limits in force."""
        limits = (*self.budget.limits, *self.auxiliary.limits)
        return Rules(limits=limits, unknown_price=self.budget.unknown_price)
