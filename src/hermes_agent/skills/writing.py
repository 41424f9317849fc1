"""Changing skills: one door for the model and the person, every change a version, nothing half-written."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.edits import replace
from hermes_agent.core.errors import Protected, Refused, ToolError
from hermes_agent.core.ids import Ids
from hermes_agent.core.plural import plural
from hermes_agent.host.files import PRIVATE_FOLDER, read_small, write_private
from hermes_agent.host.held import held
from hermes_agent.scanner.finding import Severity
from hermes_agent.scanner.scan import alarms
from hermes_agent.skills.changes import By, Written
from hermes_agent.skills.depot.depot import Depot
from hermes_agent.skills.depot.files import Content, files_of_folder, hash_of_files
from hermes_agent.skills.format import BadSkill, name_problems, read
from hermes_agent.skills.library import Library, NoSkill
from hermes_agent.skills.skill import FILE, Card, Layer
from hermes_agent.skills.state import base_of, based, brought_back, removed_by_hand
from hermes_agent.skills.swap import mend, swap_folder
from hermes_agent.skills.undoing import Conflict, before
from hermes_agent.skills.versions import LARGEST, Owner, SkillVersions, own_files
from hermes_agent.skills.view import inside
from hermes_agent.store.versions import Author, Version

ARCHIVE = ".archive"
Changes = Mapping[str, bytes | None]
"""What files become, by their path in the skill; None: the file goes."""
BESIDE = frozenset({Author.BACKGROUND, Author.CURATOR})
"""Authors whom nobody asked: what a person wrote or pinned is not theirs to change."""


@dataclass(slots=True, kw_only=True)
class Writer:
    """The skills of one home as something to change. `guarded` refuses what the scanner is alarmed by, where an agent
    writes it."""

    library: Library
    versions: SkillVersions
    ids: Ids
    guarded: bool = False
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def home(self) -> Path:
        """The only folder that is ever written."""
        return self.library.places.home

    async def create(self, name: str, text: str, by: By, category: str = "") -> Written:
        """A new skill. Raises `ToolError` for a name that is taken, by whatever layer, or a text that is no skill."""
        _check_new(self.home, name, text, category)
        async with self._held():
            if await self.library.same_name(name):
                raise ToolError(f"There is a skill `{name}` already.", hint="Change it with patch or edit.")
            folder = self.home / category / name if category else self.home / name
            return await self._put(name, folder, {FILE: text.encode()}, by, "create")

    async def edit(self, name: str, text: str, by: By, workspace: str = "") -> Written:
        """Replace SKILL.md as a whole."""
        read(text, name)
        async with self._held():
            folder = await self._own(name, by, workspace)
            return await self._put(name, folder, {FILE: text.encode()}, by, "edit")

    async def patch(
        self, name: str, old: str, new: str, by: By, *, file: str = FILE, everywhere: bool = False
    ) -> Written:
        """Replace text in SKILL.md or a support file."""
        async with self._held():
            folder = await self._own(name, by, "")
            path = folder / FILE if file == FILE else inside(folder, file)
            found = await asyncio.to_thread(read_small, path, LARGEST)
            if found is None:
                raise ToolError(f"The skill `{name}` has no file `{file}`.")
            done = replace(_text(found, file), old, new, everywhere=everywhere)
            if file == FILE:
                read(done.content, name)
            written = await self._put(name, folder, {file: done.content.encode()}, by, "patch")
            return dataclasses.replace(written, note=f"{plural(done.count, 'place')}, found: {done.strategy}")

    async def write_file(self, name: str, file: str, content: bytes, by: By) -> Written:
        """A support file, new or replaced."""
        if len(content) > LARGEST:
            raise ToolError(f"`{file}` would have {len(content):,} bytes; at most {LARGEST:,} are allowed.")
        async with self._held():
            folder = await self._own(name, by, "")
            inside(folder, file)
            return await self._put(name, folder, {file: content}, by, "write_file")

    async def remove_file(self, name: str, file: str, by: By) -> Written:
        """Take a support file away; its content stays in the history."""
        async with self._held():
            folder = await self._own(name, by, "")
            if not inside(folder, file).is_file():
                raise ToolError(f"The skill `{name}` has no file `{file}`.")
            return await self._put(name, folder, {file: None}, by, "remove_file")

    async def archive(self, name: str, by: By) -> Written:
        """Put a skill aside: nothing of it is lost, `restore` brings it back."""
        async with self._held():
            card = await self.library.find(name)
            await self._may(card, by)
            if not (by.author is Author.OWNER or by.backing.approved) and name in self.library.state.get().pinned:
                raise Refused(f"The person pinned `{name}`: only they put it aside.")
            if card.layer is Layer.HUB:
                raise ToolError(f"`{name}` was installed: only the person takes it away (`hermes skills uninstall`).")
            if card.layer is Layer.EXTERNAL:
                raise ToolError(
                    f"`{name}` stands in {card.folder}, which is never written: `skills.disabled` hides it."
                )
            if await asyncio.to_thread((self.library.places.bundled / name / FILE).is_file):
                self.library.state.change(removed_by_hand(name))
            if card.layer is not Layer.USER:
                await self.library.forget()
                return Written(name=name, file=FILE, version=0)
            number = await self._move(name, card.path, self.home / ARCHIVE / name, by, "archive")
            return Written(name=name, file=FILE, version=number)

    async def restore(self, name: str, by: By, category: str = "") -> Written:
        """Bring back what was put aside, into the folder of that category."""
        async with self._held():
            place = self.home / category / name
            aside, removed = _aside(self.home, name), name in self.library.state.get().removed
            if removed:
                self.library.state.change(brought_back(name))
            if not aside.is_dir() or place.exists():
                if not removed:
                    raise NoSkill(f"No skill `{name}` was put aside, or another one has its place now.")
                await self.library.forget()
                return Written(name=name, file=FILE, version=0)
            number = await self._move(name, aside, place, by, "restore")
            return Written(name=name, file=FILE, version=number)

    async def copy(self, name: str, by: By) -> Written:
        """A copy in the home of a skill that is never written where it is; it wins over the original from then on."""
        async with self._held():
            return Written(name=name, file=FILE, version=0, folder=str(await self._own(name, by, "")))

    async def revert(self, name: str, number: int, by: By) -> Written:
        """Every file as it was after that version, to the byte."""
        async with self._held():
            card = await self.library.find(name) if await self.library.same_name(name) else None
            folder = card.path if card is not None and card.layer is Layer.USER else self.home / name
            await self.notice(name)
            if card is not None and folder != card.path:
                await self._based_on(card)
            then = await self.versions.at(name, number)
            files = {item.removeprefix(f"{name}/"): content for item, content in then.items()}
            return await self._at_once(name, folder, files, by, f"revert to {number}")

    async def update(
        self, name: str, changes: Changes, by: By, *, runs: Collection[str] = (), expected: str = ""
    ) -> Written:
        """Several files of the home's own skill at once: all of them or none, whatever happens; `runs` may be run.
        Raises `Conflict` where its files have another hash than the one that is `expected`."""
        async with self._held():
            card = await self.library.find(name)
            _check_copy(name, there=card.layer is Layer.USER, card=card)
            await self._may(card, by)
            if expected and hash_of_files(await asyncio.to_thread(files_of_folder, card.path)) != expected:
                raise Conflict(f"`{name}` was changed meanwhile.")
            await self.versions.notice(name, card.path)
            return await self._at_once(name, card.path, changes, by, "update", runs)

    async def mend(self, names: Collection[str] = ()) -> None:
        """Finish or take back what a killed program left half-way; of these skills the ledger too."""
        async with self._held():
            for name in names:
                await self.notice(name)

    async def notice(self, name: str, workspace: str = "") -> None:
        """Bring the ledger in step with the files of a skill: the home's own, or else those that were installed."""
        every = await self.library.same_name(name, workspace)
        cards = [each for each in every if each.layer in (Layer.USER, Layer.HUB)]
        author = Author.HUB if cards and cards[0].layer is Layer.HUB else Author.OWNER
        await self.versions.notice(name, cards[0].path if cards else self.home / name, author)

    async def undo(self, version: Version, by: By) -> Written:
        """Take one change back, as far as it is still found; a skill that it made is put aside. Raises `Conflict`."""
        name = version.change.item.partition("/")[0]
        async with self._held():
            card = await self.library.find(name) if await self.library.same_name(name) else None
            folder = card.path if card and card.layer is Layer.USER else self.home / name
            _check_copy(name, there=folder.is_dir() or version.change.before is not None, card=card)
            await self.versions.notice(name, folder)
            if version.change.item == f"{name}/{FILE}" and version.change.before is None:
                number = await self._move(name, folder, self.home / ARCHIVE / name, by, "archive")
                return Written(name=name, file=FILE, version=number)
            return await self._at_once(name, folder, await before(self.versions, version, folder), by, "undo")

    async def owner(self, card: Card) -> Owner:
        """Whose a skill is."""
        if card.layer in (Layer.BUNDLED, Layer.HUB):
            return Owner(card.layer.value)
        state = await asyncio.to_thread(self.library.state.get)
        if card.layer is Layer.USER and card.name in state.bases:
            return Owner.HUB if base_of(state, card.name)[0] == Layer.HUB else Owner.BUNDLED
        return await self.versions.owner(card.name) if card.layer is Layer.USER else Owner.USER

    async def _own(self, name: str, by: By, workspace: str) -> Path:
        """The folder to write to: the skill's own, or a copy of a layer that is never written. Raises `ToolError`."""
        card = await self.library.find(name, workspace)
        await self._may(card, by)
        if card.layer is Layer.USER:
            await self.versions.notice(name, card.path)
            return card.path
        if card.layer is Layer.PROJECT:
            raise ToolError(f"`{name}` belongs to the project ({card.folder}).", hint="Change its files there.")
        files = await self._based_on(card)
        copied = {file: each.content for file, each in files.items()}
        copier = By(author=Author.HUB, principal=by.principal, session=by.session, first=by.first, last=by.last)
        runs = {file for file, each in files.items() if each.runs}
        await self._at_once(name, self.home / name, copied, copier, "copy", runs)
        return self.home / name

    async def _based_on(self, card: Card) -> dict[str, Content]:
        """Keep the files that a copy is made from, for the merge of a later update; the files."""
        files = await asyncio.to_thread(files_of_folder, card.path)
        found = hash_of_files(files)
        await asyncio.to_thread(self.library.state.change, based(card.name, card.layer.value, found))
        await asyncio.to_thread(Depot(self.home).keep, card.name, files, found)
        return files

    async def _may(self, card: Card, by: By) -> None:
        if by.author not in BESIDE or by.backing.approved:
            return
        if card.name in self.library.state.get().pinned:
            raise Protected(f"The person pinned `{card.name}`: it may only be proposed to change it.")
        if card.layer is Layer.USER and await self.owner(card) is Owner.USER:
            raise Protected(f"A person wrote `{card.name}`: it may only be proposed to change it.")

    async def _put(self, name: str, folder: Path, files: Changes, by: By, action: str) -> Written:
        if self.guarded and by.author is not Author.OWNER:
            _guard(files)
        act, number, last = self.ids.short(), 0, FILE
        for file, content in files.items():
            path = inside(folder, file, anywhere=True)
            found = await asyncio.to_thread(read_small, path, LARGEST * 4)
            if found == content:
                continue
            number = await self.versions.intend(f"{name}/{file}", found, content, by, action, act)
            await asyncio.to_thread(_swap, path, content)
            await self.versions.settle(number, done=True)
            last = file
        await self.library.forget()
        return Written(name=name, file=last, version=number, folder=str(folder))

    async def _at_once(
        self, name: str, folder: Path, changes: Changes, by: By, action: str, runs: Collection[str] = ()
    ) -> Written:
        """Several files in one step: all of them or none, whatever happens."""
        act, numbers = self.ids.short(), []
        for file, after in changes.items():
            found = await asyncio.to_thread(read_small, inside(folder, file, anywhere=True), LARGEST * 4)
            if found != after:
                numbers.append(await self.versions.intend(f"{name}/{file}", found, after, by, action, act))
        if numbers:
            await asyncio.to_thread(swap_folder, self.home, folder, changes, act, runs)
        for number in numbers:
            await self.versions.settle(number, done=True)
        await self.library.forget()
        return Written(name=name, file=FILE, version=numbers[-1] if numbers else 0, folder=str(folder))

    async def _move(self, name: str, old: Path, new: Path, by: By, action: str) -> int:
        await (self.versions.notice(name, old) if action == "archive" else self.notice(name))
        act, numbers = self.ids.short(), []
        for path in await asyncio.to_thread(own_files, old):
            content = await asyncio.to_thread(path.read_bytes)
            was, becomes = (content, None) if action == "archive" else (None, content)
            item = f"{name}/{path.relative_to(old)}"
            numbers.append(await self.versions.intend(item, was, becomes, by, action, act))
        await asyncio.to_thread(_rename, old, new)
        for number in numbers:
            await self.versions.settle(number, done=True)
        await self.library.forget()
        return numbers[0] if numbers else 0

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[None]:
        await asyncio.to_thread(self.home.mkdir, PRIVATE_FOLDER, parents=True, exist_ok=True)
        async with self._turn, held(self.home / ".lock"):
            await asyncio.to_thread(mend, self.home)
            yield


def _check_new(home: Path, name: str, text: str, category: str) -> None:
    problems = [*name_problems(name), *(name_problems(category) if category else ())]
    if problems:
        raise BadSkill(" ".join(problems))
    read(text, name)
    taken = {each.name.casefold(): each.name for each in home.iterdir()} if home.is_dir() else {}
    if (other := taken.get(name.casefold(), name)) != name:
        raise BadSkill(f"The folder `{other}` has the same name but for upper and lower case.")


def _check_copy(name: str, *, there: bool, card: Card | None) -> None:
    """Raise where a skill has no files of its own in the home."""
    if not there or (card is not None and card.layer is Layer.HUB):
        raise ToolError(
            f"`{name}` has no copy in the home: `hermes skills uninstall {name}` takes away what came, "
            f"`hermes skills update {name} --back` undoes an update."
        )


def _aside(home: Path, name: str) -> Path:
    if name in ("", ".", "..") or "/" in name:
        raise NoSkill(f"No skill `{name[:80]}` was put aside: that is no name of one.")
    return home / ARCHIVE / name


def _guard(files: Changes) -> None:
    for file, content in files.items():
        found = alarms((content or b"").decode("utf-8", "replace"), Severity.BLOCK)
        if found:
            raise Refused(f"`{file}` was not written, the scanner is alarmed: {found[0].what}.")


def _swap(path: Path, content: bytes | None) -> None:
    if content is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    write_private(path, content)


def _rename(old: Path, new: Path) -> None:
    new.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    if new.exists():  # An earlier one of that name: its history is in the ledger.
        shutil.rmtree(new)
    old.rename(new)


def _text(content: bytes, file: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ToolError(f"`{file}` is no text.", hint="Replace it with write_file.") from error
