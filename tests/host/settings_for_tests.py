"""A small settings tree with one field of each kind, as the tests of host/ use it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from hermes_agent.host.paths import Home
from hermes_agent.host.schema import about


class Busy(StrEnum):
    STEER = "steer"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    default: str = field(default="", metadata=about("The model that answers, as `vendor/model`."))
    fallbacks: tuple[str, ...] = field(default=(), metadata=about("Who answers when it does not."))
    stall_seconds: float = field(default=60.0, metadata=about("Silence that ends an attempt.", least=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    max_turns: int = field(default=90, metadata=about("Model calls of one run.", least=1, most=1000))
    max_money: float | None = field(default=None, metadata=about("US dollars of one run.", least=0))
    busy: Busy = field(default=Busy.STEER, metadata=about("What a message during a run does."))
    effort: Literal["low", "medium", "off"] = field(default="medium", metadata=about("How long to think."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    base_url: str = field(default="", metadata=about("Where it listens."))
    headers: dict[str, str] = field(default_factory=dict, metadata=about("Sent with each request."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    version: int = field(default=1, metadata=about("The version of these settings.", least=1))
    model: ModelSettings = field(default_factory=ModelSettings, metadata=about("Who answers."))
    agent: AgentSettings = field(default_factory=AgentSettings, metadata=about("How a run goes."))
    servers: dict[str, ServerSettings] = field(default_factory=dict, metadata=about("Model servers by name."))
    jailed: bool = field(default=False, metadata=about("Whether commands run in a jail."))
    toolsets: list[str] = field(default_factory=lambda: ["core"], metadata=about("Which tools are offered."))
    extra: dict[str, Any] = field(default_factory=dict, metadata=about("Anything."))


def home_at(path: Path) -> Home:
    return Home(root=path, base=path).ensure()
