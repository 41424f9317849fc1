"""Toolsets and capabilities by surface (terminal, API, webhook, channel) and by the speaker's role."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from hermes_agent.core.chat import Standing
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import ConfigError
from hermes_agent.core.mandate import Work
from hermes_agent.host.nearest import nearest_key
from hermes_agent.host.schema import setting

StandingOf: TypeAlias = Callable[[str], Standing]
"""What the principal of that key (`platform:user`) is to this agent; asked before each call: quick, from memory."""

GUEST = "guest"
"""The surface of everybody who is neither owner nor member, wherever they speak."""
WEBHOOK = "webhook"
"""Where a machine speaks: what it may do is the same whoever it says it is."""
UNATTENDED = frozenset({WEBHOOK, *Work})
"""Where nobody is there to answer what a run asks."""
LOCAL = ("cli:", "library:")
CHILD = "agent"
"""The platform of who works with a process that a command of the agent started."""
ONE_SERVER = "mcp:"
"""Begins the name of the toolset that is one MCP server."""
OPEN_WALLS = ("", "ssh")
"""Behind these a command sees what is the owner's: whoever is not the owner runs none."""

# Surfaces where anybody may speak, or a machine does: they have these toolsets alone unless the owner enables more.
# Nothing there runs commands, touches files, or reaches an address that a stranger names.
STRANGERS_HAVE: Mapping[str, frozenset[str]] = {
    WEBHOOK: frozenset({"todo", "clarify"}),
    GUEST: frozenset({"todo", "memory", "recall", "clarify"}),
}
# What runs on such a surface may use, whatever tools they find besides: what the toolsets need that are on, no more.
BEHIND: Mapping[str, frozenset[Capability]] = {
    "files": frozenset({Capability.FS_READ, Capability.FS_WRITE}),
    "shell": frozenset({Capability.EXEC, Capability.SPAWN}),
    "code": frozenset({Capability.EXEC}),
    "web": frozenset({Capability.NET}),
    "skills": frozenset({Capability.SKILLS}),
    "memory": frozenset({Capability.MEMORY}),
    "cron": frozenset({Capability.SCHEDULE}),
    "board": frozenset({Capability.SCHEDULE, Capability.FS_READ}),
    "sending": frozenset({Capability.FS_READ, Capability.MESSAGE}),
    "mcp": frozenset({Capability.MCP}),
    "delegation": frozenset({Capability.SPAWN}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceTools:
    """Toolset settings of one surface (section `tools.SURFACE`)."""

    enabled: tuple[str, ...] = setting((), "Toolsets that are on besides the surface's own.")
    disabled: tuple[str, ...] = setting((), "Toolsets that are off.")


def standing_here(principal: str) -> Standing:
    """The default role without an access list: local speakers are owners, the agent's own commands members, everybody
    else is a guest."""
    if principal.startswith(f"{CHILD}:"):
        return Standing.MEMBER
    return Standing.OWNER if principal.startswith(LOCAL) else Standing.GUEST


def rules_of(surface: str, standing: Standing) -> str:
    """The surface whose rules apply to a speaker of this role here."""
    return GUEST if standing is Standing.GUEST and surface not in STRANGERS_HAVE else surface


def capabilities_of(
    surface: str, standing: Standing, known: Collection[str], settings: Mapping[str, SurfaceTools]
) -> frozenset[Capability]:
    """The most that calls of this role may use on a surface with the `known` toolsets. Raises `ConfigError` if the
    settings name an unknown one."""
    ruling = rules_of(surface, standing)
    return granted_to(ruling, toolsets_of(ruling, known, settings))


def toolsets_of(surface: str, known: Collection[str], settings: Mapping[str, SurfaceTools]) -> tuple[str, ...]:
    """The toolsets of a surface, in the order of `known`. Raises `ConfigError` for one that does not exist."""
    chosen = settings.get(surface, SurfaceTools())
    for name in (*chosen.enabled, *chosen.disabled):
        check_toolset(name, known)
    return tuple(name for name in known if is_on(surface, name, settings))


def is_on(surface: str, toolset: str, settings: Mapping[str, SurfaceTools]) -> bool:
    """Whether a surface has the toolset."""
    chosen = settings.get(surface, SurfaceTools())
    return toolset not in chosen.disabled and (toolset in chosen.enabled or has_by_default(surface, toolset))


def has_by_default(surface: str, toolset: str) -> bool:
    """Whether a surface has a toolset of which the settings say nothing."""
    return surface not in STRANGERS_HAVE or toolset in STRANGERS_HAVE[surface]


def check_toolset(name: str, known: Collection[str]) -> None:
    """Raise `ConfigError`, with a suggestion, for an unknown toolset. `mcp:SERVER` is a part of the toolset `mcp`."""
    if name not in known and not (name.startswith(ONE_SERVER) and ONE_SERVER[:-1] in known):
        near = nearest_key(name, known)
        meant = f"Did you mean `{near}`?" if near else f"There are: {', '.join(known)}."
        raise ConfigError(f"There is no toolset `{name}`. {meant}")


def granted_to(surface: str, toolsets: Sequence[str]) -> frozenset[Capability]:
    """The most that runs of a surface may use."""
    if surface not in STRANGERS_HAVE:
        return frozenset(Capability)
    return frozenset[Capability]().union(*(BEHIND.get(name, ()) for name in toolsets))
