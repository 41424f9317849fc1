"""The history of skills: every change of a file of theirs in the ledger, and skills as they were."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff
from enum import StrEnum
from pathlib import Path

from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import HermesError
from hermes_agent.host.files import read_small
from hermes_agent.skills.changes import By
from hermes_agent.skills.skill import FILE
from hermes_agent.store.database import Store
from hermes_agent.store.versions import Author, Change, Kind, Version, VersionState

LARGEST = 1 << 20
MOST = 10_000


class Owner(StrEnum):
    """Whose a skill is, from its birth on."""

    USER = "user"
    BUNDLED = "bundled"
    HUB = "hub"
    FOREGROUND = "foreground"
    BACKGROUND = "background"


BORN = {
    Author.OWNER: Owner.USER,
    Author.MEMBER: Owner.USER,
    Author.HUB: Owner.HUB,
    Author.FOREGROUND: Owner.FOREGROUND,
    Author.BACKGROUND: Owner.BACKGROUND,
    Author.CURATOR: Owner.BACKGROUND,
}


class SkillVersions:
    """Versions of one home's skills. An item is `name/SKILL.md` or `name/scripts/run.sh`.

    A change is intended in the ledger, then written, then done; what a crash left intended is settled by looking at the
    file. What a person changed by hand is recorded as the owner's before anything else is.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self._clock = store, clock

    async def done_by(self, key: str) -> Version | None:
        """What the call of that key did."""
        return await self.store.versions.by_key(key) if key else None

    async def intend(self, item: str, before: bytes | None, after: bytes | None, by: By, action: str, act: str) -> int:
        """Write down what is about to happen to a file; the number of the version."""
        return await self._keep(self._change(item, before, after, by, action, act), VersionState.INTENDED)

    async def settle(self, version: int, *, done: bool) -> None:
        """Say what became of it."""
        state = VersionState.DONE if done else VersionState.DROPPED
        await self.store.write(lambda tx: self.store.versions.settle(tx, version, state), durable=False)

    async def notice(self, name: str, folder: Path, author: Author = Author.OWNER) -> None:
        """Bring the ledger in step with the files: settle what a crash left, record what was changed beside it, by hand
        unless another `author` is known."""
        there = {f"{name}/{path.relative_to(folder)}": path for path in own_files(folder)}
        for item in dict.fromkeys([*there, *await self.items(name)]):
            content = read_small(there[item], LARGEST * 4) if item in there else None
            await self._noticed(item, content, author)

    async def items(self, name: str) -> list[str]:
        """The files of a skill that ever were."""
        return [item for item in await self.store.versions.items(Kind.SKILL) if item.startswith(f"{name}/")]

    async def history(self, name: str) -> list[Version]:
        """All versions of a skill, the newest first."""
        items = await self.items(name)
        found = [each for item in items for each in await self.store.versions.list(Kind.SKILL, item, limit=MOST)]
        return sorted(found, key=lambda version: -version.id)

    async def at(self, name: str, number: int) -> dict[str, bytes | None]:
        """Each file as it stood after that version; None where there was none. Raises `HermesError`."""
        history = await self.history(name)
        if number not in {version.id for version in history}:
            raise HermesError(f"`{name}` has no version {number}: `hermes skills history {name}` lists them.")
        files: dict[str, bytes | None] = {}
        for version in reversed(history):
            if version.id <= number:
                files[version.change.item] = version.change.after
            else:
                files.setdefault(version.change.item, version.change.before)
        return files

    async def owner(self, name: str) -> Owner:
        """Whose it is: the author of its first version."""
        first = await self.store.versions.list(Kind.SKILL, f"{name}/{FILE}", limit=MOST)
        return BORN[first[-1].change.author] if first else Owner.USER

    async def _noticed(self, item: str, content: bytes | None, author: Author) -> None:
        last = await self.store.versions.latest(Kind.SKILL, item)
        while last is not None and last.state is VersionState.INTENDED:
            reached = content == last.change.after or content != last.change.before
            await self.settle(last.id, done=reached)
            last = last if reached else await self.store.versions.latest(Kind.SKILL, item)
            if reached:
                break
        known = last.change.after if last else None
        if content != known:
            action = "edit by hand" if author is Author.OWNER else "installed"
            change = self._change(item, known, content, By(author=author), action, "")
            await self._keep(change, VersionState.DONE)

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

    async def _keep(self, change: Change, state: VersionState) -> int:
        return await self.store.write(lambda tx: self.store.versions.keep(tx, change, state))


def own_files(folder: Path) -> list[Path]:
    """Every file of a skill that is kept in its history: no links, none hidden, none larger than four megabytes."""
    if not folder.is_dir():
        return []
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not path.is_symlink()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and path.stat().st_size <= LARGEST * 4
    ]


def diff_of(item: str, before: bytes | None, after: bytes | None) -> str:
    """The difference of a file as text; a word for what is no text."""
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
