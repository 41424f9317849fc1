"""What a surface may use follows from its toolsets."""

from __future__ import annotations

import pytest

from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import ConfigError
from hermes_agent.tools.surfaces import SurfaceTools, granted_to, toolsets_of

KNOWN = ("files", "shell", "todo")


def test_a_surface_of_ones_own_has_everything() -> None:
    assert toolsets_of("cli", KNOWN, {}) == KNOWN
    assert granted_to("cli", ()) == frozenset(Capability)


@pytest.mark.parametrize("surface", ["webhook", "guest"])
def test_where_anybody_may_speak_there_are_no_commands_and_files(surface: str) -> None:
    lacking = frozenset(Capability) - granted_to(surface, toolsets_of(surface, KNOWN, {}))

    machine = {Capability.FS_READ, Capability.FS_WRITE, Capability.EXEC, Capability.SPAWN, Capability.SKILLS}
    assert lacking == (machine if surface == "guest" else machine | {Capability.MEMORY})


def test_what_was_enabled_is_granted() -> None:
    chosen = toolsets_of("guest", KNOWN, {"guest": SurfaceTools(enabled=("files",), disabled=("todo",))})

    assert chosen == ("files",)
    assert Capability.FS_READ in granted_to("guest", chosen)
    assert Capability.EXEC not in granted_to("guest", chosen)


def test_a_toolset_that_does_not_exist_is_told() -> None:
    with pytest.raises(ConfigError, match="Did you mean `files`"):
        toolsets_of("cli", KNOWN, {"cli": SurfaceTools(disabled=("file",))})
