"""A small settings tree with one field of each kind, as the tests of host/ use it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.paths import Home
from hermes_agent.host.schema import section, setting


class Busy(StrEnum):
    STEER = "steer"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    default: str = setting("", "The model that answers, as `vendor/model`.")
    fallbacks: tuple[str, ...] = setting((), "Who answers when it does not.")
    stall_seconds: float = setting(60.0, "Silence that ends an attempt.", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    max_turns: int = setting(90, "Model calls of one run.", least=1, most=1000)
    max_money: float | None = setting(None, "US dollars of one run.", least=0)
    busy: Busy = setting(Busy.STEER, "What a message during a run does.")
    effort: Literal["low", "medium", "off"] = setting("medium", "How long to think.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    base_url: str = setting("", "Where it listens.")
    headers: dict[str, str] = section(dict, "Sent with each request.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    version: int = setting(1, "The version of these settings.", least=1)
    model: ModelSettings = section(ModelSettings, "Who answers.")
    agent: AgentSettings = section(AgentSettings, "How a run goes.")
    servers: dict[str, ServerSettings] = section(dict, "Model servers by name.")
    jailed: bool = setting(False, "Whether commands run in a jail.")
    reach: Literal["some", "on"] | bool | tuple[str, ...] = setting("some", "Whom commands reach.")
    toolsets: list[str] = section(lambda: ["core"], "Which tools are offered.")
    extra: dict[str, Any] = section(dict, "Anything.")


def home_at(path: Path) -> Home:
    return Home(root=path, base=path).ensure()
