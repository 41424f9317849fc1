"""Writes skills for the model and the person alike: every change is a version, and no write is partial."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from hermes_agent.core.clock import Ids
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.edits import replace
from hermes_agent.core.errors import Protected, Refused, ToolError
from hermes_agent.core.shown import plural
from hermes_agent.host.locks import held, in_thread
from hermes_agent.host.paths import read_small
from hermes_agent.scanner.finding import Severity
from hermes_agent.scanner.scan import alarms
from hermes_agent.skills.changes import ARCHIVE, Conflict, Written, mend, programs_in, put_aside, swap, swap_folder
from hermes_agent.skills.depot import (
    Content,
    Depot,
    base_of,
    based,
    brought_back,
    files_of_folder,
    hash_of_files,
    hash_of_folder,
    removed_by_hand,
)
from hermes_agent.skills.format import BadSkill, inside, name_problems, read
from hermes_agent.skills.library import Library, NoSkill
from hermes_agent.skills.skill import FILE, Layer, SkillHeader
from hermes_agent.skills.versions import ASKED, LARGEST, Owner, SkillVersions, moving, plan
from hermes_agent.store.versions import Author, By, Version
from hermes_agent.store.working_copy import again

Changes = Mapping[str, bytes | None]
"""What files become, by their path in the skill; None: the file goes."""
BESIDE = frozenset({Author.BACKGROUND, Author.CURATOR})
"""Authors whom nobody asked: what a person wrote or pinned is not theirs to change."""


@dataclass(slots=True, kw_only=True)
class Writer:
    """Write access to the skills of one home. `guarded` refuses agent-written text that alarms the scanner;
    `is_asked_for` says whether a person asked for a text in a session."""

    library: Library
    versions: SkillVersions
    ids: Ids
    guarded: bool = False
    is_asked_for: Callable[[str, str], Awaitable[bool]] | None = None

    @property
    def home(self) -> Path:
        """The only folder that is ever written."""
        return self.library.places.home

    @again
    async def create(self, name: str, text: str, by: By, category: str = "") -> Written:
        """Create a skill. Raises `ToolError` for a name that any layer has, or an invalid text."""
        _check_new(self.home, name, text, category)
        asks = self.is_asked_for if by.author is Author.FOREGROUND else None
        action = ASKED if asks is not None and await asks(by.session, text) else "create"
        async with self._held():
            await self.notice(name)
            if await self.library.same_name(name):
                raise ToolError(f"There is a skill `{name}` already.", hint="Change it with patch or edit.")
            written = await self._put(name, self.home / category / name, {FILE: text.encode()}, by, action)
            return dataclasses.replace(written, note="It is the person's, who asked for it." if action == ASKED else "")

    @again
    async def edit(self, name: str, text: str, by: By, workspace: str = "") -> Written:
        """Replace the whole SKILL.md."""
        read(text, name)
        async with self._held():
            folder = await self._own(name, by, workspace)
            return await self._put(name, folder, {FILE: text.encode()}, by, "edit")

    @again
    async def patch(
        self, name: str, old: str, new: str, by: By, *, file: str = FILE, everywhere: bool = False
    ) -> Written:
        """Replace text in SKILL.md or a support file."""
        async with self._held():
            folder = await self._own(name, by, "")
            path = folder / FILE if file == FILE else inside(folder, file)
            found = await asyncio.to_thread(read_small, path, LARGEST)
            done = replace(_text(name, file, found), old, new, everywhere=everywhere)
            if file == FILE:
                read(done.content, name)
            written = await self._put(name, folder, {file: done.content.encode()}, by, "patch")
            return dataclasses.replace(written, note=f"{plural(done.count, 'place')}, found: {done.strategy}")

    @again
    async def write_file(self, name: str, file: str, content: bytes, by: By) -> Written:
        """Create or replace a support file."""
        if len(content) > LARGEST:
            raise ToolError(f"`{file}` would have {len(content):,} bytes; at most {LARGEST:,} are allowed.")
        async with self._held():
            folder = await self._own(name, by, "")
            inside(folder, file)
            return await self._put(name, folder, {file: content}, by, "write_file")

    @again
    async def remove_file(self, name: str, file: str, by: By) -> Written:
        """Delete a support file; the history keeps its content."""
        async with self._held():
            folder = await self._own(name, by, "")
            if not inside(folder, file).is_file():
                raise ToolError(f"The skill `{name}` has no file `{file}`.")
            return await self._put(name, folder, {file: None}, by, "remove_file")

    @again
    async def archive(self, name: str, by: By) -> Written:
        """Archive a skill; `restore` brings it back."""
        async with self._held():
            header = await self.library.find(name)
            await self._may(header, by)
            if not (by.author is Author.OWNER or by.backing.approved) and name in self.library.state.get().pinned:
                raise Refused(f"The person pinned `{name}`: only they archive it.")
            if header.layer is Layer.HUB:
                raise ToolError(f"`{name}` was installed: only the person takes it away (`hermes skills uninstall`).")
            if header.layer is Layer.EXTERNAL:
                raise ToolError(
                    f"`{name}` stands in {header.folder}, which is never written: `skills.disabled` hides it."
                )
            if await asyncio.to_thread((self.library.places.bundled / name / FILE).is_file):
                await self.library.state.change(removed_by_hand(name))
            if header.layer is not Layer.USER:
                await self.library.forget()
                return Written(name=name, file=FILE, version=0)
            return await self._move(name, header.path, self.home / ARCHIVE / name, by, "archive")

    @again
    async def restore(self, name: str, by: By) -> Written:
        """Restore an archived skill to its place."""
        async with self._held():
            aside, removed = _aside(self.home, name), name in self.library.state.get().removed
            if removed:
                await self.library.state.change(brought_back(name))
            if not aside.is_dir() or (place := await self.versions.place(name)).exists():
                if not removed:
                    raise NoSkill(f"No archived skill is called `{name}`, or another one has its place now.")
                await self.library.forget()
                return Written(name=name, file=FILE, version=0)
            return await self._move(name, aside, place, by, "restore")

    @again
    async def copy(self, name: str, by: By) -> Written:
        """Copy a read-only skill into the home, where it takes precedence over the original."""
        async with self._held():
            return Written(name=name, file=FILE, version=0, folder=str(await self._own(name, by, "")))

    @again
    async def revert(self, name: str, number: int, by: By) -> Written:
        """Restore every file to its state after that version; a deleted skill returns to its place."""
        async with self._held():
            header = await self.library.find(name) if await self.library.same_name(name) else None
            own = header.path if header is not None and header.layer is Layer.USER else None
            await self.notice(name)
            if header is not None and own is None:
                await self._based_on(header)
            then = await self.versions.at(name, number)
            files = {item.removeprefix(f"{name}/"): content for item, content in then.items()}
            runs = programs_in(files) if own is None else frozenset()
            folder = own or await self.versions.place(name)
            return await self._at_once(name, folder, files, by, f"revert to {number}", runs)

    @again
    async def update(
        self, name: str, changes: Changes, by: By, *, runs: Collection[str] = (), expected: str = ""
    ) -> Written:
        """Change several files of the home's own skill atomically; `runs` are executable. Raises `Conflict` where
        their hash is not `expected`."""
        async with self._held():
            header = await self.library.find(name)
            _check_copy(name, there=header.layer is Layer.USER, header=header)
            await self._may(header, by)
            if expected and await asyncio.to_thread(hash_of_folder, header.path) != expected:
                raise Conflict(f"`{name}` was changed meanwhile.")
            await self._in_step(name, header.path)
            return await self._at_once(name, header.path, changes, by, "update", runs)

    async def mend(self, names: Collection[str] = ()) -> None:
        """Finish or revert what a killed program left half-done; synchronise these skills with the ledger."""
        async with self._held():
            for name in names:
                await self.notice(name)

    async def notice(self, name: str, workspace: str = "") -> None:
        """Synchronise the ledger with the home's own files of a skill, and with enabled installed ones."""
        headers = {header.layer: header.path for header in reversed(await self.library.same_name(name, workspace))}
        await self._in_step(name, headers.get(Layer.USER, self.home / name))
        if Layer.HUB in headers and Layer.USER not in headers:
            await self._in_step(name, headers[Layer.HUB], Author.HUB)

    @again
    async def undo(self, version: Version, by: By) -> Written:
        """Undo one change as far as its text is still there; a skill that it created is archived. Raises `Conflict`."""
        name = version.change.item.partition("/")[0]
        async with self._held():
            header = await self.library.find(name) if await self.library.same_name(name) else None
            folder = header.path if header and header.layer is Layer.USER else self.home / name
            _check_copy(name, there=folder.is_dir() or version.change.before is not None, header=header)
            await self._in_step(name, folder)
            if version.change.item == f"{name}/{FILE}" and version.change.before is None:
                return await self._move(name, folder, self.home / ARCHIVE / name, by, "archive")
            return await self._at_once(name, folder, await self.versions.without(version, folder), by, "undo")

    async def owner(self, header: SkillHeader) -> Owner:
        """The owner of a skill."""
        if header.layer in (Layer.BUNDLED, Layer.HUB):
            return Owner(header.layer.value)
        state = await asyncio.to_thread(self.library.state.get)
        if header.layer is Layer.USER and header.name in state.bases:
            return Owner.HUB if base_of(state, header.name)[0] == Layer.HUB else Owner.BUNDLED
        return await self.versions.owner(header.name) if header.layer is Layer.USER else Owner.USER

    async def _own(self, name: str, by: By, workspace: str) -> Path:
        """The folder to write to: the skill's own, or a copy of a layer that is never written. Raises `ToolError`."""
        header = await self.library.find(name, workspace)
        await self._may(header, by)
        if header.layer is Layer.USER:
            await self._in_step(name, header.path)
            return header.path
        if header.layer is Layer.PROJECT:
            raise ToolError(f"`{name}` belongs to the project ({header.folder}).", hint="Change its files there.")
        files = await self._based_on(header)
        copied = {file: each.content for file, each in files.items()}
        await self._in_step(name, self.home / name)
        copier = By(author=Author.HUB, principal=by.principal, session=by.session, first=by.first, last=by.last)
        runs = {file for file, each in files.items() if each.runs}
        await self._at_once(name, self.home / name, copied, copier, "copy", runs)
        return self.home / name

    async def _based_on(self, header: SkillHeader) -> dict[str, Content]:
        """Keep the files that a copy is made from, for the merge of a later update; the files."""
        files = await asyncio.to_thread(files_of_folder, header.path)
        found = hash_of_files(files)
        await self.library.state.change(based(header.name, header.layer.value, found))
        await asyncio.to_thread(Depot(self.home).keep, header.name, files, found)
        return files

    async def _may(self, header: SkillHeader, by: By) -> None:
        if by.author not in BESIDE or by.backing.approved:
            return
        if header.name in self.library.state.get().pinned:
            raise Protected(f"The person pinned `{header.name}`: it may only be proposed to change it.")
        if header.layer is Layer.USER and await self.owner(header) is Owner.USER:
            raise Protected(f"`{header.name}` is a person's: it may only be proposed to change it.")

    async def _put(self, name: str, folder: Path, files: Changes, by: By, action: str) -> Written:
        if self.guarded and by.author is not Author.OWNER:
            _guard(files)
        return await self._at_once(name, folder, files, by, action)

    async def _at_once(
        self, name: str, folder: Path, changes: Changes, by: By, action: str, runs: Collection[str] = ()
    ) -> Written:
        """Files in one step: all of them or none, whatever happens."""
        act, plans = self.ids.short(), await asyncio.to_thread(plan, name, folder, changes)
        intended = await self.versions.intend(plans, by, action, act, folder)
        if len(changes) == 1:
            for each in plans:
                await in_thread(partial(swap, folder / each.file, each.after, runs=each.file in runs))
        elif plans:
            await in_thread(partial(swap_folder, self.home, folder, changes, act, runs))
        await self.versions.complete(intended)
        await self.library.forget()
        file = next(iter(changes)) if len(changes) == 1 else FILE
        last = max((each.version for each in intended.values()), default=0)
        return Written(name=name, file=file, version=last, folder=str(folder))

    async def _move(self, name: str, old: Path, new: Path, by: By, action: str) -> Written:
        away = action == "archive"
        await (self._in_step(name, old) if away else self.notice(name))
        plans = await asyncio.to_thread(moving, name, old, away=away)
        intended = await self.versions.intend(plans, by, action, self.ids.short(), old if away else new)
        await in_thread(partial(put_aside, old, new))
        await self.versions.complete(intended)
        await self.library.forget()
        return Written(name=name, file=FILE, version=next((each.version for each in intended.values()), 0))

    async def _in_step(self, name: str, folder: Path, author: Author = Author.FOUND) -> None:
        if await self.versions.notice(name, folder, author):
            await self.library.forget()

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[None]:
        async with held(self.home / ".lock"):
            await in_thread(partial(mend, self.home))
            yield


def _check_new(home: Path, name: str, text: str, category: str) -> None:
    problems = [*name_problems(name), *(name_problems(category) if category else ())]
    if problems:
        raise BadSkill(" ".join(problems))
    read(text, name)
    taken = {each.name.casefold(): each.name for each in home.iterdir()} if home.is_dir() else {}
    if (other := taken.get(name.casefold(), name)) != name:
        raise BadSkill(f"The folder `{other}` has the same name but for upper and lower case.")


def _check_copy(name: str, *, there: bool, header: SkillHeader | None) -> None:
    """Raise where a skill has no files of its own in the home."""
    if not there or (header is not None and header.layer is Layer.HUB):
        raise ToolError(
            f"`{name}` has no copy in the home: `hermes skills uninstall {name}` takes away what came, "
            f"`hermes skills update {name} --back` undoes an update."
        )


def _aside(home: Path, name: str) -> Path:
    if name in ("", ".", "..") or "/" in name:
        raise NoSkill(f"No archived skill is called `{name[:80]}`: that is not a skill's name.")
    return home / ARCHIVE / name


def _guard(files: Changes) -> None:
    for file, content in files.items():
        found = alarms((content or b"").decode("utf-8", "replace"), Severity.BLOCK)
        if found:
            raise Refused(f"`{file}` was not written, the scanner is alarmed: {found[0].what}.")


def _text(name: str, file: str, content: bytes | None) -> str:
    if content is None:
        raise ToolError(f"The skill `{name}` has no file `{file}`.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ToolError(f"`{file}` is not text.", hint="Replace it with write_file.") from error
