"""The API and webhooks beside a gateway: nothing of them is loaded before the settings want one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes_agent.app.settings import Settings
from hermes_agent.app.system import System
from hermes_agent.cli.output import announce
from hermes_agent.host.late import late

if TYPE_CHECKING:
    from hermes_agent.api.serve import Servers

CHECK = "hermes_agent.api.serve:check"
SERVERS = "hermes_agent.api.serve:Servers"


class SideServers:
    """Goes by the settings of a gateway whose system is `runtime`."""

    def __init__(self, runtime: System) -> None:
        self._runtime = runtime
        self._servers: Servers | None = None

    @property
    def url(self) -> str:
        """Where the API is; empty: nowhere."""
        return self._servers.url if self._servers else ""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where the API and the webhooks are, in words."""
        return self._servers.addresses if self._servers else ()

    def check(self, settings: Settings, secret: Callable[[str], str]) -> None:
        """Raise `ConfigError` for keys and routes that cannot be."""
        check(settings, secret)

    async def follow(self, settings: Settings) -> None:
        """Listen where the settings say. Raises `ConfigError`."""
        if self._servers is None and is_wanted(settings):
            self._servers = late(SERVERS)(self._runtime, announce)
        if self._servers is not None:
            await self._servers.follow(settings)

    async def close(self) -> None:
        """Listen no more."""
        if self._servers is not None:
            await self._servers.close()


def check(settings: Settings, secret: Callable[[str], str]) -> None:
    """Raise `ConfigError` for keys and routes that cannot be."""
    if is_wanted(settings):
        late(CHECK)(settings, secret)


def is_wanted(settings: Settings) -> bool:
    """Whether anything is to listen."""
    return settings.api.enabled or settings.webhooks.enabled
