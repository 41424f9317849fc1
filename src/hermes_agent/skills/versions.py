"""Version history of skills: every file change in the ledger, and earlier states."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import unified_diff
from enum import StrEnum
from functools import partial
from itertools import pairwise
from pathlib import Path

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import read_small
from hermes_agent.skills.changes import merged, rebased, render
from hermes_agent.skills.depot import own_files
from hermes_agent.skills.format import inside, name_problems
from hermes_agent.skills.skill import FILE
from hermes_agent.store.database import Store
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.versions import OUTSIDE, Author, By, Change, Kind, Overtaken, Version
from hermes_agent.store.working_copy import Standing, WorkingCopy

LARGEST = 1 << 20
MOST = 10_000


ASKED = "create as asked"
"""How a skill is made that a person asked for: it is theirs, whoever wrote it."""
BIRTHS = frozenset({("create", Author.FOREGROUND), ("create", Author.BACKGROUND), (ASKED, Author.FOREGROUND)})
"""What makes a skill anew, also one whose name was somebody's before; who puts one back makes none."""
ANEW = frozenset({"edit by hand", OUTSIDE})
"""How a skill is called that was found in a folder; the first, by earlier versions."""


class Owner(StrEnum):
    """Who a skill belongs to, decided when it is created."""

    USER = "user"
    BUNDLED = "bundled"
    HUB = "hub"
    FOREGROUND = "foreground"
    BACKGROUND = "background"


BORN = {
    Author.OWNER: Owner.USER,
    Author.FOUND: Owner.USER,
    Author.MEMBER: Owner.USER,
    Author.HUB: Owner.HUB,
    Author.FOREGROUND: Owner.FOREGROUND,
    Author.BACKGROUND: Owner.BACKGROUND,
    Author.CURATOR: Owner.BACKGROUND,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A planned change of a skill's file: the content before and after (None: no file)."""

    item: str
    before: bytes | None
    after: bytes | None

    @property
    def file(self) -> str:
        """Its path in the skill."""
        return self.item.partition("/")[2]


class SkillVersions:
    """Versions of one home's skills. An item is `name/SKILL.md` or `name/scripts/run.sh`.

    A change is recorded as intended, written, then recorded as done; after a crash, the file's content decides an
    intended change. What a file held that nobody known wrote is recorded first, as found.
    """

    def __init__(self, store: Store, clock: Clock, home: Path) -> None:
        self.store, self._clock, self.home = store, clock, home
        self._files = WorkingCopy(store, Kind.SKILL, home / ".shown.json", merged)

    async def done_by(self, key: str) -> Version | None:
        """The result of the call with that key."""
        return await self.store.versions.by_key(key) if key else None

    async def intend(
        self, plans: Sequence[Planned], by: By, action: str, act: str, folder: Path | None = None
    ) -> dict[str, Standing]:
        """Record intended changes of a skill's files in that folder, all or none. Without a folder they are private
        to this home. Raises `Overtaken` where another home changed a file."""
        versions, planned = self.store.versions, []
        private, category = folder is None, "" if folder is None else self._category(folder)
        for plan in plans:
            head = None if private else await versions.latest(Kind.SKILL, plan.item)
            if versions.machine and head is not None and head.change.after != plan.before:
                raise Overtaken(f"{plan.item} was changed meanwhile: nothing was written.")
            change = self._change(plan.item, plan.before, plan.after, by, action, act)
            change = replace(change, folder=category, private=private)
            planned.append((change, None if private else head.id if head else 0))

        async def keep(tx: Transaction) -> list[int]:
            return [await versions.record(tx, change, follows=follows) for change, follows in planned]

        numbers = await self.store.write(keep)
        return {
            plan.item: Standing(version=number, content=plan.after, author=by.author, folder=category, private=private)
            for plan, number in zip(plans, numbers, strict=True)
        }

    async def complete(self, intended: Mapping[str, Standing]) -> None:
        """Mark intended changes as done."""
        await self._files.show(intended)
        await self._files.done(*(each.version for each in intended.values()))

    async def notice(self, name: str, folder: Path, author: Author = Author.FOUND) -> bool:
        """Synchronise ledger and files: settle changes that a crash left intended, record edits (as found,
        unless `author` says installed), and write other homes' changes. Whether any file was written."""
        there = {f"{name}/{path.relative_to(folder)}": path for path in own_files(folder)}
        behind: dict[str, Standing] = {}
        in_step: dict[str, Standing] = {}
        for item in dict.fromkeys([*there, *await self.items(name)]):
            content = read_small(there[item], LARGEST * 4) if item in there else None
            edit = partial(self._edit, item, author, self._category(folder))
            standing = await self._files.compare(item, content, edit, private=author is Author.HUB)
            (in_step if standing.content == content else behind)[item] = standing
        await self._files.show(in_step)
        if behind:
            place = self._below(next(iter(behind.values())).folder, name)
            files = {item.removeprefix(f"{name}/"): each.content for item, each in behind.items()}
            await asyncio.to_thread(render, self.home, folder, place, files)
            await self._files.show(behind)
        return bool(behind)

    async def place(self, name: str) -> Path:
        """The last folder of a skill according to the ledger."""
        newest = await self.store.versions.latest(Kind.SKILL, f"{name}/{FILE}")
        return self._below(newest.change.folder if newest else "", name)

    def _below(self, category: str, name: str) -> Path:
        return self.home / name if name_problems(category) else self.home / category / name

    def _category(self, folder: Path) -> str:
        """The category that a skill's folder stands in; empty for none."""
        return folder.parent.name if folder.parent != self.home else ""

    async def behind(self) -> list[str]:
        """The skills that other homes changed; ignores invalid names, which could be paths to anywhere."""
        names = dict.fromkeys(item.partition("/")[0] for item in await self._files.behind())
        return [name for name in names if not name_problems(name)]

    async def items(self, name: str) -> list[str]:
        """All files that a skill ever had."""
        return [item for item in await self.store.versions.items(Kind.SKILL) if item.startswith(f"{name}/")]

    async def history(self, name: str) -> list[Version]:
        """All versions of a skill, the newest first."""
        items = await self.items(name)
        found = [each for item in items for each in await self.store.versions.list(Kind.SKILL, item, limit=MOST)]
        return sorted(found, key=lambda version: -version.id)

    async def at(self, name: str, number: int) -> dict[str, bytes | None]:
        """Each file after that version; None where there was none. Raises `HermesError`."""
        history = await self.history(name)
        if number not in {version.id for version in history}:
            raise HermesError(f"`{name}` has no version {number}: `hermes skills history {name}` lists them.")
        return files_at(history, number)

    async def without(self, version: Version, folder: Path) -> Mapping[str, bytes | None]:
        """The files that this version's act changed, with that act reverted. Raises `Conflict`."""
        name, act = version.change.item.partition("/")[0], version.change.change
        files: dict[str, bytes | None] = {}
        for each in await self.history(name):
            if each.id == version.id or (act and each.change.change == act):
                file = each.change.item.removeprefix(f"{name}/")
                current = read_small(folder / file, LARGEST * 4)
                files[file] = rebased(current, each.change.after, each.change.before)
        return files

    async def owner(self, name: str) -> Owner:
        """Its owner: whoever created it, or requested that."""
        versions = await self.store.versions.list(Kind.SKILL, f"{name}/{FILE}", limit=MOST)
        if not versions:
            return Owner.USER
        changes = [each.change for each in versions]
        born = next((each for each, older in pairwise(changes) if _is_birth(each, older)), changes[-1])
        return Owner.USER if born.action == ASKED else BORN[born.author]

    def _edit(
        self, item: str, author: Author, folder: str, before: bytes | None, after: bytes | None, found: Author
    ) -> Change:
        """A change that was found in a file: of nobody known, installed, or put back by whoever is `found`."""
        action = "installed" if author is Author.HUB else OUTSIDE if found is Author.FOUND else "put back"
        by = By(author=author if author is Author.HUB else found)
        change = self._change(item, before, after, by, action, "")
        return replace(change, folder=folder, private=author is Author.HUB)

    def _change(self, item: str, before: bytes | None, after: bytes | None, by: By, action: str, act: str) -> Change:
        return Change(
            kind=Kind.SKILL,
            item=item,
            at=self._clock.now(),
            author=by.author,
            action=action,
            before=before,
            after=after,
            change=act,
            principal=by.principal,
            session=by.session,
            first=by.first,
            last=by.last,
            key=by.key,
            undoes=by.undoes,
            evidence=by.backing.evidence,
            taint=by.backing.taint,
            cost=by.backing.cost,
            note=by.backing.note,
        )


def _is_birth(change: Change, older: Change) -> bool:
    """Whether a skill was made by this change; who writes its old text by hand puts it back."""
    is_new = change.action in ANEW and change.before is None and change.after != older.before
    return (change.action, change.author) in BIRTHS or is_new


def files_at(history: Sequence[Version], number: int) -> dict[str, bytes | None]:
    """Each file after that version, from a history with the newest first; None where there was none."""
    files: dict[str, bytes | None] = {}
    for version in reversed(history):
        if version.id <= number:
            files[version.change.item] = version.change.after
        else:
            files.setdefault(version.change.item, version.change.before)
    return files


def plan(name: str, folder: Path, changes: Mapping[str, bytes | None]) -> list[Planned]:
    """The planned changes of these files, without unchanged ones. Blocks."""
    found = {file: read_small(inside(folder, file, anywhere=True), LARGEST * 4) for file in changes}
    return [
        Planned(item=f"{name}/{file}", before=found[file], after=after)
        for file, after in changes.items()
        if after != found[file]
    ]


def moving(name: str, folder: Path, *, away: bool) -> list[Planned]:
    """The planned changes for archiving or restoring a skill's folder. Blocks."""
    plans = []
    for path in own_files(folder):
        item, content = f"{name}/{path.relative_to(folder)}", path.read_bytes()
        before, after = (content, None) if away else (None, content)
        plans.append(Planned(item=item, before=before, after=after))
    return plans


def diff_of(item: str, before: bytes | None, after: bytes | None) -> str:
    """The difference of a file as text; a word for binary files."""
    try:
        old, new = ((each or b"").decode().splitlines(keepends=True) for each in (before, after))
    except UnicodeDecodeError:
        return f"{item}: a binary file changed.\n"
    lines = unified_diff(
        old, new, f"a/{item}" if before is not None else "/dev/null", f"b/{item}" if after is not None else "/dev/null"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def diffs(before: Mapping[str, bytes | None], after: Mapping[str, bytes | None]) -> str:
    """The difference between two states of a skill."""
    items = sorted({*before, *after})
    return "".join(
        diff_of(item, before.get(item), after.get(item)) for item in items if before.get(item) != after.get(item)
    )
