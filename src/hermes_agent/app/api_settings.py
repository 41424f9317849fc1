"""Settings of what listens: the API server and the webhook routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Standing
from hermes_agent.host.schema import section, setting

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
    """One more key of the API (section `api.keys.NAME`)."""

    secret: str = setting("", "Name of the secret that holds the key (`hermes secrets`, .env).")
    standing: Standing = setting(Standing.MEMBER, "Role of a client with this key: owner, member or guest.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """The API server."""

    enabled: bool = setting(False, "Whether `hermes gateway run` serves the API too.")
    host: str = setting("127.0.0.1", "Address to listen on.")
    port: int = setting(API_PORT, "Port; 0 takes a free one.", least=0, most=HIGHEST_PORT)
    allowed_hosts: tuple[str, ...] = setting((), "Other host names of the server, for the Host check.")
    keys: Mapping[str, ApiKeySettings] = section(dict, "Keys besides API_SERVER_KEY, which is the owner's.")
    max_body_mb: float = setting(10.0, "Largest request, in megabytes; images travel in it.", least=0.001, most=1000)
    max_waiting: int = setting(1000, "Requests that may wait for a run at a time; more get status 429.", least=1)
    workspace: str = setting("", "Folder in which runs work; empty: `workspace` in the home.")


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
    """Webhook routes."""

    enabled: bool = setting(False, "Whether `hermes gateway run` serves webhooks too.")
    host: str = setting("127.0.0.1", "Address to listen on.")
    port: int = setting(WEBHOOK_PORT, "Port; 0 takes a free one.", least=0, most=HIGHEST_PORT)
    max_body_mb: float = setting(1.0, "Largest request, in megabytes.", least=0.001, most=100)
    clock_skew: float = setting(300.0, "Seconds that a signed time may differ from ours.", least=1, most=3600)
    routes: Mapping[str, WebhookRoute] = section(dict, "Routes by name.")
