"""Which toolsets a surface has, and what its runs may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import ConfigError
from hermes_agent.host.nearest import nearest_key

GUEST = "guest"
"""The surface of everybody who is neither owner nor member, wherever they speak."""

# Surfaces where anybody may speak, or a machine does: these toolsets are off unless somebody enables them.
WITHOUT: Mapping[str, frozenset[str]] = {
    "webhook": frozenset({"files", "shell", "code", "skills", "memory", "recall"}),
    GUEST: frozenset({"files", "shell", "code", "skills"}),
}
# What a run lacks where such a surface has not this toolset, whatever tools it finds besides.
BEHIND: Mapping[str, frozenset[Capability]] = {
    "memory": frozenset({Capability.MEMORY}),
    "files": frozenset({Capability.FS_READ, Capability.FS_WRITE}),
    "shell": frozenset({Capability.EXEC, Capability.SPAWN}),
    "skills": frozenset({Capability.SKILLS}),
    "recall": frozenset(),  # it reads what was said with this principal alone
    "code": frozenset(),  # a program needs what `shell` needs
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceTools:
    """What one surface has (section `tools.SURFACE`)."""

    enabled: tuple[str, ...] = field(default=(), metadata={"doc": "Toolsets that are on beside the surface's own."})
    disabled: tuple[str, ...] = field(default=(), metadata={"doc": "Toolsets that are off."})


def toolsets_of(surface: str, known: Sequence[str], settings: Mapping[str, SurfaceTools]) -> tuple[str, ...]:
    """The toolsets of a surface, in the order of `known`. Raises `ConfigError` for one that does not exist."""
    chosen = settings.get(surface, SurfaceTools())
    for name in (*chosen.enabled, *chosen.disabled):
        check_toolset(name, known)
    off = (WITHOUT.get(surface, frozenset()) - set(chosen.enabled)) | set(chosen.disabled)
    return tuple(name for name in known if name not in off)


def check_toolset(name: str, known: Sequence[str]) -> None:
    """Raises `ConfigError`, with the nearest name, for a toolset that does not exist."""
    if name not in known:
        near = nearest_key(name, known)
        meant = f"Did you mean `{near}`?" if near else f"There are: {', '.join(known)}."
        raise ConfigError(f"There is no toolset `{name}`. {meant}")


def granted_to(surface: str, toolsets: Sequence[str]) -> frozenset[Capability]:
    """What runs of a surface may use at most."""
    lacking = [BEHIND[name] for name in WITHOUT.get(surface, ()) if name not in toolsets]
    return frozenset(Capability).difference(*lacking)
