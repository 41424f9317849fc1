"""Subcommand `hermes secrets`: manage secrets for tools and where each may be sent; values are never shown."""

from __future__ import annotations

from dataclasses import asdict

import click

from hermes_agent.cli.output import columns, remark, say, show
from hermes_agent.cli.picker_choices import ask_secret
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.errors import ConfigError
from hermes_agent.host.config_edit import set_value, unset
from hermes_agent.tools.settings import SecretUse

LISTED = columns(NAME="name", FROM=lambda each: each["source"] or "no value", HOSTS="hosts", COMMANDS="commands")


@click.group(short_help="Save secrets for tools, by name.")
def secrets() -> None:
    """Save secrets for tools. The model writes ${secret:NAME} and never sees the value."""


@secrets.command("list")
@pass_surface
def list_(surface: Surface) -> None:
    """List the names, and the hosts and commands that may have them."""
    uses = surface.loaded.value.secrets
    found = [
        {"name": name, "source": surface.secrets.source(name), **asdict(uses.get(name, SecretUse()))}
        for name in sorted({*uses, *surface.secrets.kept})
    ]
    show(found, LISTED, nothing="No secrets.")


@secrets.command("set")
@click.argument("name")
@pass_surface
def set_(surface: Surface, name: str) -> None:
    """Save a secret. Hermes asks for the value without showing it, or reads standard input."""
    value = ask_secret(name, empty=True)
    if not value:
        raise ConfigError("An empty value is not a secret. Nothing was changed.")
    surface.secrets.set(name, value)
    say(f"Saved {name} in {surface.home.env_file}.", name=name)
    remark(f"Tools may use it only where you allow it: `hermes secrets allow {name}`.")


@secrets.command()
@click.argument("name")
@pass_surface
def remove(surface: Surface, name: str) -> None:
    """Delete a secret and its permissions."""
    gone = surface.secrets.unset(name)
    if name in surface.loaded.value.secrets:
        gone = unset(surface.home, surface.schema, f"secrets.{name}") or gone
    say(f"{name} is deleted." if gone else f"There was no secret {name}.", name=name, removed=gone)


@secrets.command()
@click.argument("name")
@click.option("--host", "hosts", multiple=True, help="A host, as a glob: api.example.com, *.example.com.")
@click.option("--command", "commands", multiple=True, help="A command or tool, as a glob: 'git push*'.")
@pass_surface
def allow(surface: Surface, name: str, hosts: tuple[str, ...], commands: tuple[str, ...]) -> None:
    """Allow a secret for another host or command."""
    if not hosts and not commands:
        raise click.UsageError("Name a place: --host or --command.")
    now = surface.loaded.value.secrets.get(name, SecretUse())
    for key, texts in (("hosts", (*now.hosts, *hosts)), ("commands", (*now.commands, *commands))):
        quoted = ", ".join(f"'{text}'" for text in dict.fromkeys(texts))
        set_value(surface.home, surface.schema, f"secrets.{name}.{key}", f"[{quoted}]")
    places = (*now.hosts, *hosts, *now.commands, *commands)
    say(f"{name} may go to: {', '.join(places)}", name=name, places=places)
