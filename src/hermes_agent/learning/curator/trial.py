"""The index of the library as it would be: a copy in which a change is tried before anything is written."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_agent.host.files import PRIVATE_FOLDER
from hermes_agent.skills.format import read
from hermes_agent.skills.library import Library, indexed
from hermes_agent.skills.places import Root, found_in
from hermes_agent.store.skills_index import Indexed, SkillsIndex

BATCH = 200
DAY = 86_400.0
NAME = "curator-"
"""What the folders of trials begin with."""


class Trial:
    """What queries would find. `change` and `take` are kept until they are taken `back`."""

    def __init__(self, library: Library, folder: Path) -> None:
        self._library, self._folder = library, folder
        self._index = SkillsIndex(folder / "skills.db")
        self._rows: dict[str, Indexed] = {}
        self._roots: tuple[Root, ...] = ()
        self._hidden: frozenset[str] = frozenset()

    async def open(self) -> None:
        """Read all skills of the home, and those that come with it."""
        await asyncio.to_thread(_made_anew, self._folder)
        places = self._library.places
        self._roots = await asyncio.to_thread(places.roots)
        removed = (await asyncio.to_thread(self._library.state.get)).removed
        self._hidden = frozenset(str(places.bundled / name) for name in removed)
        for root in self._roots:
            rows = await asyncio.to_thread(_all_in, root)
            self._rows.update({row.folder: row for row in rows})
            for first in range(0, len(rows), BATCH):
                await self._index.update(rows[first : first + BATCH])

    async def close(self) -> None:
        """Throw it away."""
        await self._index.close()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def finds(self, query: str, shown: int) -> Sequence[str]:
        """See `Finds`."""
        rows = await self._index.search(query, [root.key for root in self._roots], shown * 2)
        disabled = self._library.disabled
        return [row.name for row in rows if row.folder not in self._hidden and row.name not in disabled][:shown]

    async def change(self, texts: Mapping[Path, str], gone: Sequence[Path] = ()) -> None:
        """SKILL.md of these folders is that, and these folders are not there."""
        home = str(self._library.places.home)
        put = [self._row(folder, text, home) for folder, text in texts.items()]
        await self._index.update(put, [str(folder) for folder in gone])

    async def back(self, folders: Sequence[Path]) -> None:
        """These folders are as they are."""
        names = [str(folder) for folder in folders]
        await self._index.update([self._rows[name] for name in names if name in self._rows], names)

    def keep(self, texts: Mapping[Path, str], gone: Sequence[Path] = ()) -> None:
        """What was changed is what later changes begin with."""
        home = str(self._library.places.home)
        self._rows.update({str(folder): self._row(folder, text, home) for folder, text in texts.items()})
        for folder in gone:
            self._rows.pop(str(folder), None)

    def _row(self, folder: Path, text: str, home: str) -> Indexed:
        skill = read(text, folder.name)
        category = folder.parent.name if str(folder.parent) != home else ""
        return Indexed(
            folder=str(folder),
            root=home,
            name=skill.name,
            stamp="",
            family=skill.ours.category or category,
            about=" ".join((skill.description, *skill.ours.tags)),
            body=skill.body,
        )


def _made_anew(folder: Path) -> None:
    """An empty folder; those that killed passes left beside it go after a day."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(PRIVATE_FOLDER, parents=True)
    for other in folder.parent.glob(f"{NAME}*"):
        if other.stat().st_mtime + DAY < folder.stat().st_mtime:
            shutil.rmtree(other, ignore_errors=True)


def _all_in(root: Root) -> list[Indexed]:
    return [indexed(root, each) for each in found_in(root)]
