"""Operations on file checkpoints: list, compare, restore and prune them, and format them for a person."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_agent.app.operations.access import Access, HomeSystem, Kind, Noun, option, place, verb
from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import Home, current_folder
from hermes_agent.tools.checkpoints.checkpoints import Checkpoint, Checkpoints, Restored, changed_in
from hermes_agent.tools.settings import CheckpointSettings

FOLDER = "checkpoints"
SAME = "Nothing changed since."


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
    names = [*done.written, *(f"{name} (removed)" for name in done.removed)]
    names += [f"{name} (left as it is: no checkpoint can keep what it holds now)" for name in done.left]
    if not names:
        return f"Nothing changed since checkpoint {number}."
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


def _at(access: Access[HomeSystem], root: str) -> tuple[Checkpoints, Path]:
    """The checkpoints of a home, and the folder that is meant."""
    access.check_owner("Only the owner sees the checkpoints of all folders.")
    system = access.system
    kept = checkpoints_of(system.home, system.settings.checkpoints, system.clock)
    return kept, folder_of(root, Path(access.folder) if access.folder else current_folder())


async def list_checkpoints(access: Access[HomeSystem], root: str, everywhere: bool) -> list[dict[str, Any]]:
    """The checkpoints of a folder, the latest first; or the folders that have some, with their number."""
    kept, folder = _at(access, root)
    if everywhere:
        return [{"root": each, "checkpoints": count} for each, count in await count_folders(kept)]
    return [_facts(each) for each in await kept.of(folder)]


async def show_checkpoint(access: Access[HomeSystem], number: int, root: str) -> dict[str, Any]:
    """A checkpoint, with the files that changed since. Raises `HermesError`."""
    kept, folder = _at(access, root)
    chosen, diff = await kept.find(folder, number), await kept.diff(folder, number)
    return {**_facts(chosen), "changed": changed_in(diff)}


async def diff_checkpoint(access: Access[HomeSystem], number: int, file: str, root: str) -> dict[str, Any]:
    """What changed since a checkpoint, in all files or in one. Raises `HermesError`."""
    kept, folder = _at(access, root)
    return {"number": number, "diff": await kept.diff(folder, number, file)}


async def restore_checkpoint(access: Access[HomeSystem], number: int, file: str, root: str) -> dict[str, Any]:
    """Restore all files, or one, after a checkpoint of how they are. Raises `HermesError`."""
    kept, folder = _at(access, root)
    done = await kept.restore(folder, number, file)
    told = {"written": done.written, "removed": done.removed, "left": done.left, "undo": done.undo.number}
    return {**told, "text": restore_report(done, number)}


async def prune_checkpoints(access: Access[HomeSystem], keep: int, root: str, everywhere: bool) -> dict[str, Any]:
    """Delete the older checkpoints of a folder, or of all folders; keep so many (0: as the settings say)."""
    kept, folder = _at(access, "" if everywhere else root)
    if keep < 0:
        raise HermesError(f"{keep} is no number of checkpoints.")
    gone = await prune_folders(kept, None if everywhere else folder, keep or None)
    return {"forgotten": gone, "text": f"{gone} forgotten."}


def _facts(each: Checkpoint) -> dict[str, Any]:
    told = each.told
    return {"number": each.number, "at": each.at, "before": told.why, "session": told.session, "whole": told.whole}


def _line(each: dict[str, Any]) -> str:
    if "root" in each:
        return f"{each['checkpoints']:>4}  {each['root']}"
    return f"{each['number']:>4}  {when(each['at'])}  before {each['before']}  {each['session']}".rstrip()


ROOT = option("root", "--root", "The folder; by default the one that you are in.", Kind.TEXT, "")
NUMBER, FILE = place("number", Kind.COUNT), place("file", default="")
CHECKPOINTS = Noun(
    name="checkpoints",
    offline=True,
    short_help="List checkpoints of changed files, and restore them.",
    help="List checkpoints of changed files, and restore them.",
    verbs=(
        verb(
            "list",
            "List the checkpoints of a folder, the latest first.",
            list_checkpoints,
            ROOT,
            option("everywhere", "--all", "The folders that have checkpoints, and how many."),
            text=lambda found: "\n".join(map(_line, found)) or "No checkpoints.",
        ),
        verb(
            "show",
            "Show one checkpoint, and which files changed since.",
            show_checkpoint,
            NUMBER,
            ROOT,
            text=lambda found: "\n  ".join((_line(found).strip(), *(found["changed"] or [SAME]))),
        ),
        verb(
            "diff",
            "Show what changed since a checkpoint, in all files or in one.",
            diff_checkpoint,
            NUMBER,
            FILE,
            ROOT,
            text=lambda found: found["diff"].rstrip("\n") or SAME,
        ),
        verb(
            "restore",
            "Restore all files, or one, to a checkpoint. Hermes takes a checkpoint first, so you can undo this.",
            restore_checkpoint,
            NUMBER,
            FILE,
            ROOT,
            text=lambda found: found["text"],
        ),
        verb(
            "prune",
            "Delete the older checkpoints of a folder.",
            prune_checkpoints,
            option("keep", "--keep", "Number of checkpoints to keep; default: checkpoints.keep.", Kind.NUMBER, 0),
            ROOT,
            option("everywhere", "--all", "All folders; also delete the checkpoints of folders that are gone."),
            text=lambda found: found["text"],
        ),
    ),
)
