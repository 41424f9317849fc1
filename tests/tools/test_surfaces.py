"""What somebody may use follows from who they are and where they speak."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from hermes_agent.app.manifest import TOOLSETS, manifest
from hermes_agent.core.chat import Standing
from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import ConfigError
from hermes_agent.tools.surfaces import (
    BEHIND,
    STRANGERS_HAVE,
    SurfaceTools,
    granted_to,
    rules_of,
    standing_here,
    toolsets_of,
)

KNOWN = ("files", "shell", "web", "memory", "todo")
OWNER, MEMBER, GUEST = Standing.OWNER, Standing.MEMBER, Standing.GUEST


class Allowance(NamedTuple):
    surface: str
    toolsets: tuple[str, ...]
    capabilities: frozenset[Capability]


def has(surface: str, standing: Standing, known: tuple[str, ...] = KNOWN, **settings: SurfaceTools) -> Allowance:
    ruling = rules_of(surface, standing)
    toolsets = toolsets_of(ruling, known, settings)
    return Allowance(ruling, toolsets, granted_to(ruling, toolsets))


@pytest.mark.parametrize("standing", [OWNER, MEMBER])
@pytest.mark.parametrize("surface", ["cli", "library", "telegram", "api"])
def test_owner_and_members_have_everything_where_they_speak(surface: str, standing: Standing) -> None:
    assert has(surface, standing) == (surface, KNOWN, frozenset(Capability))


@pytest.mark.parametrize("surface", ["cli", "telegram", "api", "guest"])
def test_a_guest_has_the_same_wherever_they_speak(surface: str) -> None:
    assert has(surface, GUEST) == ("guest", ("memory", "todo"), {Capability.MEMORY})


@pytest.mark.parametrize("standing", list(Standing))
def test_a_webhook_may_use_nothing_of_the_machine_whoever_it_says_it_is(standing: Standing) -> None:
    assert has("webhook", standing) == ("webhook", ("todo",), frozenset())


def test_a_webhook_lacks_whatever_a_guest_lacks() -> None:
    assert STRANGERS_HAVE["webhook"] <= STRANGERS_HAVE["guest"]


@pytest.mark.parametrize("surface", ["guest", "webhook"])
def test_a_new_toolset_is_not_for_strangers_until_somebody_says_so(surface: str) -> None:
    assert "new" not in has(surface, OWNER, (*KNOWN, "new")).toolsets
    assert "new" in has(surface, OWNER, (*KNOWN, "new"), **{surface: SurfaceTools(enabled=("new",))}).toolsets
    assert "new" in has("cli", OWNER, (*KNOWN, "new")).toolsets


def test_a_toolset_brings_what_its_tools_need() -> None:
    lacking = [
        f"{toolset}: BEHIND of tools/surfaces.py lacks {need}, which {entry.name} needs"
        for toolset, entries in manifest().items()
        for entry in entries
        for need in entry.needs
        if need not in BEHIND.get(toolset, ())
    ]

    assert lacking == []


@pytest.mark.parametrize(
    ("toolset", "brings"),
    [
        ("files", {Capability.FS_READ, Capability.FS_WRITE}),
        ("shell", {Capability.EXEC, Capability.SPAWN}),
        ("web", {Capability.NET}),
    ],
)
def test_what_the_owner_enables_brings_what_it_needs_and_no_more(toolset: str, brings: set[Capability]) -> None:
    _, toolsets, capabilities = has("telegram", GUEST, guest=SurfaceTools(enabled=(toolset,), disabled=("memory",)))

    assert toolsets == tuple(name for name in KNOWN if name in (toolset, "todo"))
    assert capabilities == brings


def test_what_was_enabled_for_one_surface_is_for_no_other() -> None:
    settings = {"telegram": SurfaceTools(enabled=("web",)), "webhook": SurfaceTools(enabled=("web",))}

    assert Capability.NET not in has("telegram", GUEST, **settings)[2]
    assert Capability.NET in has("webhook", GUEST, **settings)[2]


def test_no_toolset_that_there_is_gives_a_guest_the_machine() -> None:
    found = has("telegram", GUEST, TOOLSETS)

    assert found.capabilities == {Capability.MEMORY}


def test_without_an_access_list_whoever_speaks_here_is_the_owner() -> None:
    assert [standing_here(key) for key in ("cli:root", "library:me")] == [OWNER, OWNER]
    assert [standing_here(key) for key in ("telegram:7", "webhook:github", "clip:x", "")] == [GUEST] * 4


def test_a_toolset_that_does_not_exist_is_told() -> None:
    with pytest.raises(ConfigError, match="Did you mean `files`"):
        toolsets_of("cli", KNOWN, {"cli": SurfaceTools(disabled=("file",))})


def test_a_server_is_a_toolset_where_there_are_servers() -> None:
    off = SurfaceTools(disabled=("mcp:tracker",))

    assert toolsets_of("cli", (*KNOWN, "mcp"), {"cli": off}) == (*KNOWN, "mcp")
    with pytest.raises(ConfigError, match="There is no toolset `mcp:tracker`"):
        toolsets_of("cli", KNOWN, {"cli": off})
