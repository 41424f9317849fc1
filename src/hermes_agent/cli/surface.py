"""What every subcommand is handed: the command line's options, and the home, settings and keys that they lead to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermes_agent.app.operations.access import Access, OfflineSystem, open_offline
from hermes_agent.app.settings import Settings
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.output import remark
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.config import Loaded, load
from hermes_agent.host.late import late
from hermes_agent.host.paths import Home, current_folder, environment, find_home
from hermes_agent.host.secrets import Secrets, open_secrets

if TYPE_CHECKING:
    from hermes_agent.app.system import System


@dataclass(frozen=True, kw_only=True)
class Surface:
    """The person's shell. Everything is read when it is first asked for."""

    invocation: Invocation = field(default_factory=Invocation)
    variables: Mapping[str, str] = field(default_factory=environment, repr=False)

    @cached_property
    def home(self) -> Home:
        """The home that the environment and `--profile` name; it need not exist. Raises `HomeError`."""
        return find_home(self.invocation.profile, self.variables)

    @cached_property
    def schema(self) -> type[Any]:
        """The class of all settings."""
        return Settings

    @property
    def loaded(self) -> Loaded[Any]:
        """The settings as they are now."""
        return load(self.home, self.schema, self.variables)

    @cached_property
    def secrets(self) -> Secrets:
        """The keys. Raises `HomeError`."""
        return open_secrets(self.home, self.variables)


pass_surface = click.make_pass_decorator(Surface, ensure=True)


T = TypeVar("T")


@asynccontextmanager
async def offline(surface: Surface) -> AsyncIterator[Access[OfflineSystem]]:
    """The home without runs. Raises `ConfigError`, `HomeError`, `StoreError`."""
    async with open_offline(surface.home.ensure(), surface.loaded.usable(), str(current_folder())) as access:
        if access.system.notice:
            remark(access.system.notice)
        yield access


def ask(surface: Surface, operation: Callable[[Access[OfflineSystem]], Awaitable[T]]) -> T:
    """Do one operation that starts no run."""

    async def run() -> T:
        async with offline(surface) as access:
            return await operation(access)

    return asyncio.run(run())


def ask_system(surface: Surface, operation: Callable[[Access[System]], Awaitable[T]], model: str = "") -> T:
    """Do one operation that needs a whole system, whose sessions are answered by `model` (empty: the usual one)."""

    async def run() -> T:
        opening = late("hermes_agent.app.opening")
        async with opening.open_system(surface.home.ensure(), opening.Options(model=model)) as system:
            return await operation(Access(system=system, who=system.owner, folder=str(current_folder())))

    return asyncio.run(run())
