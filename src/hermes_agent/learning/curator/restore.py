"""Putting skills back as a snapshot has them: of a pass that broke something, or that a person does not want."""

from __future__ import annotations

import asyncio

from hermes_agent.core.dataclass import dataclass
from hermes_agent.learning.curator.candidates import hash_of
from hermes_agent.learning.curator.plan import Stood
from hermes_agent.learning.curator.snapshot import Snapshot
from hermes_agent.skills.changes import ARCHIVE, By
from hermes_agent.skills.depot import files_of_folder, hash_of_files
from hermes_agent.skills.skill import FILE, Layer, SkillHeader
from hermes_agent.skills.writing import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Each skill to the byte, every change a version of its own."""

    writer: Writer
    snapshot: Snapshot

    async def skill(self, name: str, stood: Stood | None, by: By) -> bool:
        """Make one skill what it was (None: there was none); False where it is so already. Raises `HermesError`."""
        live = await own(self.writer, name)
        if stood is None:
            return live is not None and bool((await self.writer.archive(name, by)).version)
        if live is not None and await asyncio.to_thread(hash_of, live.path) == stood.hash:
            return False
        was = await asyncio.to_thread(self.snapshot.files, stood.place)
        category = stood.place.rpartition("/")[0]
        if live is None:
            aside = self.writer.home / ARCHIVE / name
            if await asyncio.to_thread(hash_of, aside) == hash_of_files(was):
                return bool((await self.writer.restore(name, by, category)).version)
            live = await self._made(name, was[FILE].content.decode(), by, category)
        now = await asyncio.to_thread(files_of_folder, live.path)
        changes = {
            file: was[file].content if file in was else None
            for file in sorted({*was, *now})
            if was.get(file) != now.get(file)
        }
        runs = {file for file in changes if file in was and was[file].runs}
        await self.writer.update(name, changes, by, runs=runs)
        return True

    async def _made(self, name: str, text: str, by: By, category: str) -> SkillHeader:
        await self.writer.create(name, text, by, category)
        return await self.writer.library.find(name)


async def own(writer: Writer, name: str) -> SkillHeader | None:
    """The home's own skill of that name."""
    headers = await writer.library.same_name(name)
    return next((header for header in headers if header.layer is Layer.USER), None)
