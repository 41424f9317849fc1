"""The built-in tools of one process, by toolset, and what stands around them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from hermes_agent.agent.hooks import Hook
from hermes_agent.app.guards import PermissionHook, SpillHook
from hermes_agent.app.settings import Settings
from hermes_agent.core.clock import Clock
from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import ConfigError
from hermes_agent.core.tool import Tool
from hermes_agent.host.paths import Home, environment
from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.environment import scrubbed
from hermes_agent.tools.clarify import ClarifyTools
from hermes_agent.tools.excerpt import Caps
from hermes_agent.tools.files.guard import Guard
from hermes_agent.tools.files.readlog import ReadLog
from hermes_agent.tools.files.tools import FileTools
from hermes_agent.tools.files.writing import Writer
from hermes_agent.tools.permission import Permission
from hermes_agent.tools.remembered import RememberedFile
from hermes_agent.tools.schema import capability_of, collect
from hermes_agent.tools.shell import ShellTools
from hermes_agent.tools.spill import Spill
from hermes_agent.tools.todo import Todos, TodoTools
from hermes_agent.tools.toolbox import Toolbox

TOOLSETS = ("files", "shell", "todo", "clarify")
"""The built-in toolsets, in the order in which the prompt names their tools."""


class Toolkit:
    """The toolbox of this process, and the permission that its calls need.

    `toolsets` narrows the built-in ones (None: all); an unknown name raises `ConfigError`. `quarantined` names tools
    that are not offered, with the reason.
    """

    def __init__(
        self, home: Home, settings: Settings, clock: Clock, toolsets: Sequence[str] | None, extra: Sequence[Tool]
    ) -> None:
        unknown = sorted(set(toolsets or ()) - set(TOOLSETS))
        if unknown:
            raise ConfigError(f"There is no toolset `{unknown[0]}`. There are: {', '.join(TOOLSETS)}.")
        caps = Caps(max_bytes=settings.tool_output.max_bytes, max_lines=settings.tool_output.max_lines)
        place = LocalPlace(folder=home.cache / "exec", env=scrubbed(environment(), settings.terminal.env_passthrough))
        self._shell = ShellTools(place=place, settings=settings.terminal, caps=caps)
        files = FileTools(
            guard=Guard(home=home.root, person=Path.home()),
            log=ReadLog(home.cache / "read"),
            writer=Writer(),
            ripgrep=shutil.which("rg") or "",
        )
        sets: dict[str, object] = {
            "files": files,
            "shell": self._shell,
            "todo": TodoTools(Todos(home.cache / "todo")),
            "clarify": ClarifyTools(),
        }
        wanted = [sets[name] for name in TOOLSETS if toolsets is None or name in toolsets]
        tools, self.quarantined = collect([*wanted, *extra])
        self.toolbox = Toolbox(tools)
        self._spill = Spill(home.cache / "results", caps)
        self._permission = Permission(settings.approvals, RememberedFile(home.root / "approvals.yaml", clock))

    def hooks(self, granted: Sequence[str] | None, *, attended: bool) -> tuple[Hook, ...]:
        """What stands around every call of a run; `granted` names capabilities, None all of them."""
        permission = PermissionHook(
            permission=self._permission,
            folder=self._shell.directory,
            granted=frozenset(Capability) if granted is None else frozenset(map(capability_of, granted)),
            attended=attended,
        )
        return permission, SpillHook(spill=self._spill)
