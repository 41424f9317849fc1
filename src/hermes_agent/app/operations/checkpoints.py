"""Checkpoints of a home, and what is said of them to a person."""

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
    """The checkpoints of a home."""
    return Checkpoints(home.root / FOLDER, settings, clock)


def when(at: float) -> str:
    """A moment on this machine's clock."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def line_of(each: Checkpoint) -> str:
    """One checkpoint in a line."""
    part = "" if each.told.whole else "  (only the files that were changed)"
    return f"{each.number:>4}  {when(each.at)}  before {each.told.why}{part}"


def restore_report(done: Restored, number: int) -> str:
    """What a restore did, and how it is undone."""
    if not done.written and not done.removed:
        return f"Nothing changed since checkpoint {number}."
    names = [*done.written, *(f"{name} (removed)" for name in done.removed)]
    shown = "\n".join(f"  {name}" for name in names[:20]) + (
        f"\n  and {len(names) - 20} more" if len(names) > 20 else ""
    )
    return f"Restored checkpoint {number}:\n{shown}\nTo undo this, restore checkpoint {done.undo.number}."


def folder_of(named: str, here: Path) -> Path:
    """The folder that a person names, or where they are. Raises `HermesError` where it is none."""
    root = (here / Path(named).expanduser()) if named else here
    if not root.is_dir():
        raise HermesError(f"{root} is not a folder.")
    return root


async def count_folders(kept: Checkpoints) -> list[tuple[str, int]]:
    """The folders that have checkpoints, and how many; 0 for those that are gone."""
    return [(str(root), len(await kept.of(root)) if root.is_dir() else 0) for root in await kept.roots()]


async def prune_folders(kept: Checkpoints, root: Path | None, keep: int | None) -> int:
    """Forget the older checkpoints of a folder, or of every one and those that are gone; how many."""
    gone = 0
    for each in await kept.roots() if root is None else [root]:
        if each.is_dir():
            gone += await kept.prune(each, keep)
        else:
            await kept.forget(each)
    return gone
