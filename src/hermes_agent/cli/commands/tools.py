"""Subcommand `hermes tools`: list tools, and enable or disable toolsets per surface."""

from __future__ import annotations

import click

from hermes_agent.app.chats.people import NONE, People
from hermes_agent.app.manifest import IN_CHATS, TOOLSETS, BuiltIn
from hermes_agent.app.toolkit import CLI, needs_without_store
from hermes_agent.cli.output import columns, say, show
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.host.config_edit import set_value
from hermes_agent.host.nearest import nearest_key
from hermes_agent.tools.surfaces import GUEST, WEBHOOK, SurfaceTools, check_toolset, has_by_default

SURFACES = (CLI, "library", "api", WEBHOOK, GUEST, *CHANNELS)


def known(_context: click.Context, _option: click.Parameter, name: str) -> str:
    """Click callback: validate a surface name, with a suggestion."""
    if name not in SURFACES:
        near = nearest_key(name, SURFACES)
        meant = f"Did you mean `{near}`?" if near else f"There are: {', '.join(SURFACES)}."
        raise ConfigError(f"There is no surface `{name}`. {meant}")
    return name


ON = click.option(
    "--surface",
    "name",
    default=CLI,
    show_default=True,
    callback=known,
    help="cli, library, api, webhook, guest, a channel.",
)


@click.group(short_help="Show tools, and switch them on and off by surface.")
def tools() -> None:
    """Show tools, and switch toolsets on and off by surface."""


@tools.command("list")
@ON
@pass_surface
def list_(surface: Surface, name: str) -> None:
    """List the tools, and whether a surface has them."""
    state = {name.upper(): lambda each: "on" if each["on"] else "off"}
    show(offered(surface, name), columns(TOOL="tool", TOOLSET="toolset", **state, NEEDS="needs", DOES="summary"))


@tools.command()
@click.argument("toolsets", nargs=-1, required=True)
@ON
@pass_surface
def enable(surface: Surface, toolsets: tuple[str, ...], name: str) -> None:
    """Switch toolsets on for a surface."""
    _switch(surface, name, toolsets, on=True)


@tools.command()
@click.argument("toolsets", nargs=-1, required=True)
@ON
@pass_surface
def disable(surface: Surface, toolsets: tuple[str, ...], name: str) -> None:
    """Switch toolsets off for a surface."""
    _switch(surface, name, toolsets, on=False)


def offered(surface: Surface, name: str) -> list[dict[str, object]]:
    """Every built-in tool that a surface may have, and whether it is enabled."""
    people = People(dict.fromkeys(CHANNELS, NONE))
    kit = BuiltIn(needs_without_store(surface.home, surface.loaded.value, {People: people}))
    has = kit.toolsets(name)
    return [
        {
            "tool": tool.schema.name,
            "toolset": toolset,
            "on": toolset in has,
            "needs": tuple(sorted(tool.needs)),
            "summary": tool.schema.description.splitlines()[0],
        }
        for toolset in TOOLSETS
        if name in CHANNELS or toolset not in IN_CHATS
        for tool in kit.tools_of(toolset)
    ]


def _switch(surface: Surface, name: str, toolsets: tuple[str, ...], *, on: bool) -> None:
    for toolset in toolsets:
        check_toolset(toolset, TOOLSETS)
        if toolset in IN_CHATS and name not in CHANNELS:
            raise ConfigError(f"Only chat platforms have `{toolset}`; {name} is none.")
    now = surface.loaded.value.tools.get(name, SurfaceTools())
    enabled = [each for each in now.enabled if each not in toolsets]
    disabled = [each for each in now.disabled if each not in toolsets]
    if on:
        enabled += [each for each in toolsets if not has_by_default(name, each)]
    else:
        disabled += [each for each in toolsets if has_by_default(name, each)]
    for key, names in (("enabled", enabled), ("disabled", disabled)):
        set_value(surface.home, surface.schema, f"tools.{name}.{key}", f"[{', '.join(names)}]")
    words = f"{', '.join(toolsets)}: {'on' if on else 'off'} for {name}, from the next session on."
    say(words, surface=name, toolsets=toolsets, enabled=on)
