"""Slash command /rollback: restores files from checkpoints."""

from __future__ import annotations

from pathlib import Path

from hermes_agent.app.checkpoints import checkpoints_of
from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.checkpoints import line_of, restore_report
from hermes_agent.core.errors import HermesError

SHOWN = 15
USAGE = "Say `/rollback` for the list, `/rollback N [FILE]`, or `/rollback diff N [FILE]`."


async def rollback(desk: Desk, rest: str) -> Done:
    """List the checkpoints of the working folder, show the diff to one, or restore files from one."""
    root, words = Path(desk.record.workspace), rest.split(maxsplit=2)
    kept = checkpoints_of(desk.runtime.home, desk.runtime.settings.checkpoints, desk.runtime.clock)
    shows_diff = bool(words) and words[0] == "diff"
    number, *more = (words[1:] or [""]) if shows_diff else rest.split(maxsplit=1) or [""]
    if not rest:
        found = await kept.of(root)
        lines = [line_of(each) for each in found[:SHOWN]]
        return Done(text="\n".join(lines) if lines else "No checkpoint of this folder was taken yet.")
    if not number.isdecimal():
        raise HermesError(USAGE)
    file = more[0].strip() if more else ""
    if shows_diff:
        return Done(text=await kept.diff(root, int(number), file) or f"Nothing changed since checkpoint {number}.")
    return Done(text=restore_report(await kept.restore(root, int(number), file), int(number)))


ROLLBACK = Command(
    name="rollback",
    summary="Restore files to a checkpoint; without a number, list the checkpoints.",
    arguments="[diff] [n] [file]",
    act=rollback,
)
