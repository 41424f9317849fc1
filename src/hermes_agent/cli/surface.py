"""Context of every subcommand: global options, and the home, settings and secrets they lead to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any

import click

from hermes_agent.app.settings import Settings
from hermes_agent.cli.options import Invocation
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.config import Loaded, load
from hermes_agent.host.paths import Home, environment, find_home
from hermes_agent.host.secrets import Secrets, open_secrets


@dataclass(frozen=True, kw_only=True)
class Surface:
    """What a subcommand gets: options and environment variables; home, settings and secrets load when used."""

    invocation: Invocation = field(default_factory=Invocation)
    variables: Mapping[str, str] = field(default_factory=environment, repr=False)

    @cached_property
    def home(self) -> Home:
        """The home named by the environment and `--profile`; it need not exist. Raises `HomeError`."""
        return find_home(self.invocation.profile, self.variables)

    @cached_property
    def schema(self) -> type[Any]:
        """The class of all settings."""
        return Settings

    @property
    def loaded(self) -> Loaded[Any]:
        """The current settings."""
        return load(self.home, self.schema, self.variables)

    @cached_property
    def secrets(self) -> Secrets:
        """The secrets. Raises `HomeError`."""
        return open_secrets(self.home, self.variables)


pass_surface = click.make_pass_decorator(Surface, ensure=True)
