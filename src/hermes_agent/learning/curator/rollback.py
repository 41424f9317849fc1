"""Taking a pass back: each skill as it was before, to the byte, where nobody changed it since."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.learning.curator import report
from hermes_agent.learning.curator.candidates import hash_of
from hermes_agent.learning.curator.journal import JournalFile, brought_back, kept_apart
from hermes_agent.learning.curator.plan import Stood
from hermes_agent.learning.curator.report import Run
from hermes_agent.learning.curator.reporting import Places
from hermes_agent.learning.curator.restore import Restore, own
from hermes_agent.learning.curator.snapshot import Snapshot
from hermes_agent.skills.changes import By
from hermes_agent.skills.writing import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """Takes passes back in the name of `by`, which is given the key of each change."""

    clock: Clock
    writer: Writer
    journal_file: JournalFile
    places: Places
    by: Callable[[str], By]

    async def __call__(self, name: str = "") -> list[str]:
        """Take back the pass of that name (none: the newest that changed something); a sentence for each skill. What
        was joined stays apart, and its age counts anew. Raises `HermesError`."""
        run = await self._one(name)
        back = Restore(writer=self.writer, snapshot=Snapshot(Path(run.snapshot)))
        lines = [await self._put_back(back, run, each) for each in run.skills]
        now = self.clock.now()
        pairs = [
            pair
            for each in run.changes
            if each.kind == "join" and each.state == "done"
            for pair in combinations((each.name, *each.absorbs), 2)
        ]
        await self.journal_file.change(brought_back(run.skills, now))
        await self.journal_file.change(kept_apart(pairs))
        done = msgspec.structs.replace(run, rolled_back=now)
        await asyncio.to_thread(report.keep, done, self.places.logs / run.id)
        return lines

    async def _one(self, name: str) -> Run:
        if name:
            run = await asyncio.to_thread(report.one_kept, self.places.logs, name)
        else:
            runs = await asyncio.to_thread(report.all_kept, self.places.logs)
            found = next((each for each in runs if each.skills and not each.rolled_back), None)
            if found is None:
                raise HermesError("There is no pass left to undo.")
            run = found
        if run.rolled_back or not run.skills:
            raise HermesError(f"The pass {run.id} {'was undone already' if run.skills else 'changed nothing'}.")
        return run

    async def _put_back(self, back: Restore, run: Run, name: str) -> str:
        was = run.skills[name]
        live = await own(self.writer, name)
        now = await asyncio.to_thread(hash_of, live.path) if live else ""
        if now == was.before:
            return f"`{name}` is as it was."
        if now != was.after:
            return f"`{name}` was changed since: it stays (`hermes skills history {name}`)."
        stood = Stood(place=was.place, hash=was.before) if was.before else None
        await back.skill(name, stood, self.by(f"{run.job}.{name}.rolled"))
        return f"`{name}` is as it was." if stood else f"`{name}`, which the pass made, is archived."
