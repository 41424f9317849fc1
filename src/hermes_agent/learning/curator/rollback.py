"""Taking a pass back: each skill as it was before, to the byte, where nobody changed it since."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path

import msgspec

from hermes_agent.core.errors import HermesError
from hermes_agent.learning.curator import report
from hermes_agent.learning.curator.candidates import JournalFile, brought_back, kept_apart
from hermes_agent.learning.curator.report import Run
from hermes_agent.learning.curator.reporting import Reporting
from hermes_agent.skills.changes import ARCHIVE, By
from hermes_agent.skills.depot import files_of_folder
from hermes_agent.skills.versions import files_at
from hermes_agent.skills.writing import Writer


async def put_back(writer: Writer, job: str, name: str, by: By) -> str:
    """Make a skill what it was before a pass first changed it, by the ledger, where nobody changed it since; what came
    of it. Raises `HermesError`."""
    await writer.mend([name])
    history, done = await writer.versions.history(name), f"`{name}` is as it was."
    others = [each.id for each in history if not each.change.key.startswith(f"{job}.")]
    first = min({each.id for each in history} - {*others}, default=0)
    number = max((each for each in others if each < first), default=0)
    was, now = (_there(files_at(history, each)) for each in (number, 1 << 62))
    if not first or was == now:
        return done
    if max(others, default=0) > first:
        return f"`{name}` was changed since: it stays (`hermes skills history {name}`)."
    if not was:
        await writer.archive(name, by)
        return f"`{name}`, which the pass made, is put aside."
    aside = await asyncio.to_thread(files_of_folder, writer.home / ARCHIVE / name)
    if not now and {f"{name}/{file}": each.content for file, each in aside.items()} == was:
        await writer.restore(name, by)
    else:
        await writer.revert(name, number, by)
    return done


def _there(files: Mapping[str, bytes | None]) -> dict[str, bytes]:
    return {item: content for item, content in files.items() if content is not None}


async def rollback(
    reporting: Reporting, journal_file: JournalFile, by: Callable[[str], By], name: str = ""
) -> list[str]:
    """Take back the pass of that name (none: the newest that changed something), in the name of `by`, which is given
    the key of each change; a sentence for each skill. What was joined stays apart, and its age counts anew. Raises
    `HermesError`."""
    run = await asyncio.to_thread(_chosen, reporting.places.logs, name)
    lines = [await put_back(reporting.writer, run.job, each, by(f"{run.job}.{each}.rolled")) for each in run.touched]
    joined = [each for each in run.changes if each.kind == "join" and each.state == "done"]
    pairs = [pair for each in joined for pair in combinations((each.name, *each.absorbs), 2)]
    now = reporting.clock.now()
    await journal_file.change(brought_back(run.touched, now))
    await journal_file.change(kept_apart(pairs))
    done = msgspec.structs.replace(run, rolled_back=now)
    await asyncio.to_thread(report.keep, done, reporting.places.logs / run.id)
    return lines


def _chosen(logs: Path, name: str) -> Run:
    """The pass to take back. Blocks. Raises `HermesError`."""
    runs = [report.one_kept(logs, name)] if name else report.all_kept(logs)
    run = next((each for each in runs if name or (each.touched and not each.rolled_back)), None)
    if run is None:
        raise HermesError("No pass changed anything that was not taken back already.")
    if run.rolled_back or not run.touched:
        raise HermesError(f"The pass {run.id} {'was taken back already' if run.touched else 'changed nothing'}.")
    return run
