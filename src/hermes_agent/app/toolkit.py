"""The built-in tools of one process, by toolset, made of what they need."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from hermes_agent.app.settings import Settings
from hermes_agent.core.tool import Tool
from hermes_agent.host.paths import Home
from hermes_agent.tools.files.guard import Guard
from hermes_agent.tools.files.readlog import ReadLog
from hermes_agent.tools.files.tools import FileTools
from hermes_agent.tools.files.writing import Writer
from hermes_agent.tools.schema import collect
from hermes_agent.tools.toolbox import Toolbox


class Toolkit:
    """The toolbox of this process."""

    def __init__(self, home: Home, settings: Settings, toolsets: Sequence[str] | None, extra: Sequence[Tool]) -> None:
        sets = {"files": self._files(home)}
        wanted = [source for name, source in sets.items() if toolsets is None or name in toolsets]
        tools, self.quarantined = collect([*wanted, *extra])
        self.toolbox = Toolbox(tools)

    def _files(self, home: Home) -> FileTools:
        return FileTools(
            guard=Guard(home=home.root, person=Path.home()),
            log=ReadLog(home.cache / "read"),
            writer=Writer(),
            ripgrep=shutil.which("rg") or "",
        )
