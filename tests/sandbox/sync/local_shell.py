"""A shell that reaches the files of this machine, as one of another machine would; and both sides of a folder."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.sync.here import Rules
from hermes_agent.sandbox.sync.syncing import Sync
from hermes_agent.sandbox.sync.there import There


@dataclass
class LocalShell:
    """`scripts` are those that it ran; one that holds `breaks` fails."""

    scripts: list[str] = field(default_factory=list)
    breaks: str = ""

    async def said(self, script: str, *arguments: str, data: bytes = b"") -> bytes:
        self.scripts.append(script)
        if self.breaks and self.breaks in script:
            raise PlaceFailed("The connection broke.")
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", script, "sync", *arguments, stdin=-1, stdout=-1, stderr=-1
        )
        out, err = await process.communicate(data)
        if process.returncode:
            raise PlaceFailed(err.decode())
        return out


class Sides:
    """A folder here and there."""

    def __init__(self, folder: Path, rules: Rules | None = None) -> None:
        self.here, self.there = folder / "here", folder / "there"
        self.here.mkdir()
        self.shell = LocalShell()
        self.rules = rules or Rules()
        self.state = folder / "state" / "one.json"
        self.sync = self.again()

    def again(self) -> Sync:
        """As another process would."""
        there = There(shell=self.shell, folder=str(self.there), rules=self.rules)
        self.sync = Sync(root=self.here, there=there, rules=self.rules, state=self.state)
        return self.sync


def files(folder: Path) -> dict[str, str]:
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.read_text() for path in found}
