"""Context of every subcommand: global options, and the home, settings and secrets they lead to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermes_agent.app.operations.access import Access, OfflineSystem, open_offline
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.output import remark
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.config import Loaded, load
from hermes_agent.host.late import late
from hermes_agent.host.paths import Home, current_folder, environment, find_home
from hermes_agent.host.secrets import Secrets, open_secrets

if TYPE_CHECKING:
    from hermes_agent.app.process import Options
    from hermes_agent.app.system import System

SETTINGS = "hermes_agent.app.settings:Settings"


@dataclass(frozen=True, kw_only=True)
class Surface:
    """What a command gets: options, environment variables, home, settings and secrets, each loaded on first use."""

    invocation: Invocation = field(default_factory=Invocation)
    variables: Mapping[str, str] = field(default_factory=environment, repr=False)

    @cached_property
    def home(self) -> Home:
        """The home named by the environment and `--profile`; it need not exist. Raises `HomeError`."""
        return find_home(self.invocation.profile, self.variables)

    @cached_property
    def schema(self) -> type[Any]:
        """The class of all settings."""
        schema: type[Any] = late(SETTINGS)
        return schema

    @property
    def loaded(self) -> Loaded[Any]:
        """The current settings."""
        return load(self.home, self.schema, self.variables)

    @cached_property
    def secrets(self) -> Secrets:
        """The secrets. Raises `HomeError`."""
        return open_secrets(self.home, self.variables)


pass_surface = click.make_pass_decorator(Surface, ensure=True)


T = TypeVar("T")


@asynccontextmanager
async def offline(surface: Surface) -> AsyncIterator[Access[OfflineSystem]]:
    """Context manager: access to the home's data without runs. Raises `ConfigError`, `HomeError`, `StoreError`."""
    async with open_offline(surface.home.ensure(), surface.loaded.usable(), str(current_folder())) as access:
        if access.system.notice:
            remark(access.system.notice)
        yield access


def ask(surface: Surface, operation: Callable[[Access[OfflineSystem]], Awaitable[T]]) -> T:
    """Run one operation that starts no run."""

    async def run() -> T:
        async with offline(surface) as access:
            return await operation(access)

    return asyncio.run(run())


def ask_system(
    surface: Surface, operation: Callable[[Access[System]], Awaitable[T]], options: Options | None = None
) -> T:
    """Run one operation that needs a whole system."""

    async def run() -> T:
        async with late("hermes_agent.app.opening:open_system")(surface.home.ensure(), options) as system:
            return await operation(Access(system=system, who=system.owner, folder=str(current_folder())))

    return asyncio.run(run())
