"""Settings of what listens: the API server and the webhook routes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Standing
from hermes_agent.host.schema import about, section

API_PORT = 8642
WEBHOOK_PORT = 8644
HIGHEST_PORT = 65_535
API_KEY = "API_SERVER_KEY"
"""The secret that lets the owner in."""
API_PLATFORM, API_OWNER = "api", "owner"
"""The platform of whoever comes in by a key, and the name of who has API_SERVER_KEY."""
SERVED = "gateway"
"""The queue of lanes that gateways, API servers and workers of one home share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeySettings:
    """One more key of the API (section `api.keys.NAME`)."""

    secret: str = field(default="", metadata={"doc": "Name of the secret that holds the key (`hermes secrets`, .env)."})
    standing: Standing = field(
        default=Standing.MEMBER, metadata={"doc": "What whoever shows it is: owner, member or guest."}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """The API server."""

    enabled: bool = field(default=False, metadata={"doc": "Whether `hermes gateway run` serves the API too."})
    host: str = field(default="127.0.0.1", metadata={"doc": "Address to listen on."})
    port: int = field(default=API_PORT, metadata=about("Port; 0 takes a free one.", least=0, most=HIGHEST_PORT))
    allowed_hosts: tuple[str, ...] = field(
        default=(), metadata={"doc": "Names under which it is reached besides its address, for the Host check."}
    )
    keys: Mapping[str, ApiKeySettings] = section(dict, "Keys besides API_SERVER_KEY, which is the owner's.")
    max_body_mb: float = field(
        default=10.0, metadata=about("Largest request, in megabytes; images travel in it.", least=0.001, most=1000)
    )
    max_waiting: int = field(
        default=1000,
        metadata=about("Requests that may wait for a run at a time; more are told to come later.", least=1),
    )
    workspace: str = field(default="", metadata={"doc": "Folder in which runs work; empty: `workspace` in the home."})


def standing_by_key(settings: ApiSettings, principal: str) -> Standing | None:
    """What the principal of that key is who came in with a key of the API, in every process; None for others."""
    platform, _, name = principal.partition(":")
    if platform != API_PLATFORM:
        return None
    if name in settings.keys:
        return settings.keys[name].standing
    return Standing.OWNER if name == API_OWNER else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRoute:
    """One webhook route (section `webhooks.routes.NAME`)."""

    secret: str = field(default="", metadata={"doc": "Name of the secret that requests are signed with."})
    scheme: Literal["github", "gitlab", "svix", "generic"] = field(
        default="generic", metadata={"doc": "How requests prove where they come from."}
    )
    events: tuple[str, ...] = field(default=(), metadata={"doc": "Events that are let in; empty: all."})
    filters: Mapping[str, str] = section(
        dict, "Field of the payload (`a.b.0.c`) to a pattern that it must match as a whole; all must."
    )
    prompt: str = field(
        default="",
        metadata={"doc": "What the agent is told; `{a.b}` is a field of the payload, `{payload}` all of it."},
    )
    skills: tuple[str, ...] = field(default=(), metadata={"doc": "Skills that are put before the prompt."})
    deliver: str = field(
        default="log", metadata={"doc": "Where the reply goes: `log`, or a chat such as `telegram:123`."}
    )
    deliver_only: bool = field(
        default=False, metadata={"doc": "Whether the filled prompt itself is delivered, and no model asked."}
    )
    per_minute: int = field(default=30, metadata=about("Requests a minute; more are told to come later.", least=1))
    model: str = field(default="", metadata={"doc": "Model of its runs; empty: the configured one."})


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Webhook routes."""

    enabled: bool = field(default=False, metadata={"doc": "Whether `hermes gateway run` serves webhooks too."})
    host: str = field(default="127.0.0.1", metadata={"doc": "Address to listen on."})
    port: int = field(default=WEBHOOK_PORT, metadata=about("Port; 0 takes a free one.", least=0, most=HIGHEST_PORT))
    max_body_mb: float = field(default=1.0, metadata=about("Largest request, in megabytes.", least=0.001, most=100))
    clock_skew: float = field(
        default=300.0, metadata=about("Seconds that a signed time may differ from ours.", least=1, most=3600)
    )
    routes: Mapping[str, WebhookRoute] = section(dict, "Routes by name.")
