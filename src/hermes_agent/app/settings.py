"""All settings: joins the sections of other packages, and declares those of API, webhooks, hooks, database and
budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Literal

from hermes_agent.agent.settings import AgentSettings, CompactionSettings
from hermes_agent.app.auxiliary.settings import AuxiliarySettings
from hermes_agent.app.chats.settings import GatewaySettings, PrivacySettings
from hermes_agent.core.chat import Standing
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.spending import Limit, Rules, Scope, UnknownPrice, limit_of
from hermes_agent.host.schema import section, setting
from hermes_agent.learning.settings import CuratorSettings, LearningSettings
from hermes_agent.memory.settings import MemorySettings
from hermes_agent.providers.settings import CredentialSettings, MixtureSettings, ModelOverride, ModelSettings
from hermes_agent.skills.skill import SkillSettings
from hermes_agent.tools.mcp.settings import McpServerSettings
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
from hermes_agent.work.board.settings import BoardSettings
from hermes_agent.work.cron.settings import CronSettings
from hermes_agent.work.delegation.settings import DelegationSettings
from hermes_agent.work.goals.settings import GoalSettings

API_PORT = 8642
WEBHOOK_PORT = 8644
HIGHEST_PORT = 65_535
API_KEY = "API_SERVER_KEY"
"""The secret that lets the owner in."""
API_PLATFORM, API_OWNER = "api", "owner"
"""The platform of whoever comes in by a key, and the name of who has API_SERVER_KEY."""
DRAIN_SECONDS = 10
"""Seconds that the API's answers under way have at the end; runs that are not over by then go on with the next
process."""
SERVED = "gateway"
"""The queue of lanes that gateways, API servers and workers of one home share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeySettings:
    """An additional API key (section `api.keys.NAME`)."""

    secret: str = setting("", "Name of the secret that holds the key (`hermes secrets`, .env).")
    standing: Standing = setting(Standing.MEMBER, "Role of a client with this key: owner, member or guest.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """Settings of the HTTP API server."""

    enabled: bool = setting(False, "Whether `hermes gateway run` serves the API too.")
    host: str = setting("127.0.0.1", "Address to listen on.")
    port: int = setting(API_PORT, "Port; 0 takes a free one.", least=0, most=HIGHEST_PORT)
    allowed_hosts: tuple[str, ...] = setting((), "Other host names of the server, for the Host check.")
    keys: Mapping[str, ApiKeySettings] = section(dict, "Keys besides API_SERVER_KEY, which is the owner's.")
    approvers: tuple[str, ...] = setting(
        (), "Keys whose programs may approve calls: names of `keys`, and `owner` for API_SERVER_KEY."
    )
    max_body_mb: float = setting(10.0, "Largest request, in megabytes; images travel in it.", least=0.001, most=1000)
    max_waiting: int = setting(1000, "Requests that may wait for a run at a time; more get status 429.", least=1)
    workspace: str = setting("", "Folder in which runs work; empty: `workspace` in the home.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcpSettings:
    """Settings of `hermes acp`, the agent in editors."""

    busy: Literal["steer", "queue"] = setting(
        "steer", "A prompt during a run: steer: the model reads it at its next turn; queue: it waits for the end."
    )
    on_leave: Literal["stop", "finish"] = setting("stop", "What becomes of runs when the editor leaves.")
    editor_buffers: bool = setting(True, "Whether files are read as the editor holds them, also unsaved.")
    trust_servers: bool = setting(False, "Whether MCP servers of the editor are used without a question.")
    toolsets: Literal["all", "coding"] = setting(
        "all", "Tools of new threads: all, or coding: without schedules, the board, goals and messages to chats."
    )


def standing_by_key(settings: ApiSettings, principal: str) -> Standing | None:
    """The role of a principal that authenticated with an API key; None for other principals."""
    platform, _, name = principal.partition(":")
    if platform != API_PLATFORM:
        return None
    if name in settings.keys:
        return settings.keys[name].standing
    return Standing.OWNER if name == API_OWNER else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRoute:
    """One webhook route (section `webhooks.routes.NAME`)."""

    secret: str = setting("", "Name of the secret that requests are signed with.")
    scheme: Literal["github", "gitlab", "svix", "generic"] = setting("generic", "How requests are signed.")
    events: tuple[str, ...] = setting((), "Events that it accepts; empty: all.")
    filters: Mapping[str, str] = section(
        dict, "Patterns by field of the payload (`a.b.0.c`); each field must match as a whole."
    )
    prompt: str = setting("", "The agent's prompt; `{a.b}` is a field of the payload, `{payload}` all of it.")
    skills: tuple[str, ...] = setting((), "Skills to put before the prompt.")
    deliver: str = setting("log", "Where the reply goes: `log`, or a chat such as `telegram:123`.")
    deliver_only: bool = setting(False, "Whether to deliver the filled prompt itself, without asking a model.")
    per_minute: int = setting(30, "Requests a minute; more get status 429.", least=1)
    model: str = setting("", "Model of its runs; empty: the configured one.")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Settings of the webhook server, with its routes."""

    enabled: bool = setting(False, "Whether `hermes gateway run` serves webhooks too.")
    host: str = setting("127.0.0.1", "Address to listen on.")
    port: int = setting(WEBHOOK_PORT, "Port; 0 takes a free one.", least=0, most=HIGHEST_PORT)
    max_body_mb: float = setting(1.0, "Largest request, in megabytes.", least=0.001, most=100)
    clock_skew: float = setting(300.0, "Seconds that a signed time may differ from ours.", least=1, most=3600)
    routes: Mapping[str, WebhookRoute] = section(dict, "Routes by name.")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSettings:
    """One user-defined event hook (section `hooks.NAME`)."""

    on: tuple[str, ...] = setting(
        (),
        "Events: gateway:start, message:received, run:start, run:end, tool:before, tool:after, reply:before, "
        "child:start, child:end.",
    )
    command: str = setting("", "The command to run; it reads the event as JSON on standard input.")
    python: str = setting("", "A Python file with a function `handle(event)`, instead.")
    tools: str = setting(".*", "Pattern of the tools whose calls run it.")
    seconds: float = setting(10.0, "How long it may take.", least=0.1, most=600)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Settings of the database."""

    url: str = setting(
        "", "Database address. Empty: hermes.db in the home; postgresql://...: a server for several machines."
    )
    shared: bool = setting(
        False, "Whether several homes of one household may use that database; otherwise a second home is refused."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """Limits of money and tokens within one scope."""

    money: float | None = setting(None, "US dollars; empty means no limit.", least=0)
    tokens: int | None = setting(None, "Tokens, in and out; empty means no limit.", least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSettings:
    """Settings of spending limits, by scope."""

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
        """The daily money and token limits that are set."""
        given = {Scope(entry.name): getattr(self, entry.name) for entry in fields(self) if entry.name in set(Scope)}
        found = [limit_of(scope, each.money, each.tokens) for scope, each in given.items()]
        return [limit for limit in found if limit is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings: the root of `config.yaml`."""

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
    delegation: DelegationSettings = section(DelegationSettings, "Agents that an agent gives work to.")
    store: StoreSettings = section(StoreSettings, "The database.")
    guardrails: GuardrailSettings = section(GuardrailSettings, "What stops a run that repeats itself.")
    goals: GoalSettings = section(GoalSettings, "Goals: turns, limits, and who judges them.")
    skills: SkillSettings = section(SkillSettings, "Skills.")
    learning: LearningSettings = section(LearningSettings, "Reviews that learn from conversations.")
    curator: CuratorSettings = section(CuratorSettings, "The curator of the skills that the agent made.")
    tools: Mapping[str, SurfaceTools] = section(dict, "Toolsets by surface: cli, acp, library, webhook, guest, ...")
    mcp_servers: Mapping[str, McpServerSettings] = section(dict, "MCP servers, by name.")
    board: BoardSettings = section(BoardSettings, "The board of cards that worker processes do.")
    gateway: GatewaySettings = section(GatewaySettings, "Chat platforms.")
    privacy: PrivacySettings = section(PrivacySettings, "What to hide from the model and the logs.")
    cron: CronSettings = section(CronSettings, "Scheduled jobs.")
    hooks: Mapping[str, HookSettings] = section(dict, "Your programs that run on events, by name.")
    api: ApiSettings = section(ApiSettings, "The API server.")
    acp: AcpSettings = section(AcpSettings, "The agent in editors.")
    webhooks: WebhookSettings = section(WebhookSettings, "Webhook routes.")
    secrets: Mapping[str, SecretUse] = section(dict, "Secrets that tools may name, and where each may go.")

    @property
    def rules(self) -> Rules:
        """The spending limits in force."""
        limits = (*self.budget.limits, *self.auxiliary.limits)
        return Rules(limits=limits, unknown_price=self.budget.unknown_price)
