"""Operations on file checkpoints: open the store, count, prune, and format checkpoints and restores for a person."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import Home
from hermes_agent.tools.checkpoints.checkpoints import Checkpoint, Checkpoints, Restored
from hermes_agent.tools.settings import CheckpointSettings

FOLDER = "checkpoints"


def checkpoints_of(home: Home, settings: CheckpointSettings, clock: Clock) -> Checkpoints:
    """The checkpoint store of a home."""
    return Checkpoints(home.root / FOLDER, settings, clock)


def when(at: float) -> str:
    """Format a time in the local time zone."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def line_of(each: Checkpoint) -> str:
    """Format one checkpoint as a line."""
    part = "" if each.told.whole else "  (only the files that were changed)"
    return f"{each.number:>4}  {when(each.at)}  before {each.told.why}{part}"


def restore_report(done: Restored, number: int) -> str:
    """Describe what a restore changed, and how to undo it."""
    if not done.written and not done.removed:
        return f"Nothing changed since checkpoint {number}."
    names = [*done.written, *(f"{name} (removed)" for name in done.removed)]
    shown = "\n".join(f"  {name}" for name in names[:20]) + (
        f"\n  and {len(names) - 20} more" if len(names) > 20 else ""
    )
    return f"Restored checkpoint {number}:\n{shown}\nTo undo this, restore checkpoint {done.undo.number}."


def folder_of(named: str, here: Path) -> Path:
    """The folder that a person names, else `here`. Raises `HermesError` if it is no folder."""
    root = (here / Path(named).expanduser()) if named else here
    if not root.is_dir():
        raise HermesError(f"{root} is not a folder.")
    return root


async def count_folders(kept: Checkpoints) -> list[tuple[str, int]]:
    """Folders with checkpoints, and their number; 0 for folders that no longer exist."""
    return [(str(root), len(await kept.of(root)) if root.is_dir() else 0) for root in await kept.roots()]


async def prune_folders(kept: Checkpoints, root: Path | None, keep: int | None) -> int:
    """Delete old checkpoints of a folder, or of all folders and of those that no longer exist. Returns their number."""
    gone = 0
    for each in await kept.roots() if root is None else [root]:
        if each.is_dir():
            gone += await kept.prune(each, keep)
        else:
            await kept.forget(each)
    return gone
