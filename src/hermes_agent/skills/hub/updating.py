"""Checks installed skills for updates and applies them; local changes are merged, or a conflict is shown."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.process import run
from hermes_agent.skills.depot import (
    Entry,
    Files,
    base_of,
    based,
    files_of_folder,
    hash_of_files,
    hash_of_folder,
    text_or_none,
)
from hermes_agent.skills.format import BadSkill, read
from hermes_agent.skills.hub.git import HubError, found_git
from hermes_agent.skills.hub.installing import Held, Hub, installed
from hermes_agent.skills.hub.sources import Offer, Tap
from hermes_agent.skills.skill import FILE, Layer, SkillHeader
from hermes_agent.store.versions import Author, By

SECONDS = 20.0
FAILED = 128  # from here on an exit code of merge-file is no number of conflicts


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A file that both sides changed in the same place; `text` shows both, or says what happened."""

    file: str
    text: str


async def merge(
    name: str, base: Files, ours: Files, theirs: Files, variables: Mapping[str, str]
) -> dict[str, bytes | None]:
    """What changes of `ours` by the changes from `base` to `theirs` (None: the file goes). Raises `Conflicted`, and
    `HubError` where git cannot be run."""
    changes: dict[str, bytes | None] = {}
    conflicts = []
    for file in sorted({*base, *ours, *theirs}):
        was, mine, new = (files[file].content if file in files else None for files in (base, ours, theirs))
        if new in (was, mine):
            continue
        if mine == was:
            changes[file] = new
            continue
        text, clean = await _merged_file(was, mine, new, variables)
        if clean:
            changes[file] = text.encode()
        else:
            conflicts.append(Conflict(file=file, text=text))
    if FILE in changes and not conflicts:
        conflicts = _still_a_skill(name, changes[FILE])
    if conflicts:
        raise Conflicted(name, tuple(conflicts))
    return changes


async def _merged_file(
    was: bytes | None, mine: bytes | None, new: bytes | None, variables: Mapping[str, str]
) -> tuple[str, bool]:
    """One file that both sides changed: the merged text, or the conflict."""
    if mine is None:
        return "You removed it, and it was changed at its source.\n", False
    if new is None:
        return "You changed it, and it was removed at its source.\n", False
    texts = [text_or_none(each) for each in (mine, was or b"", new)]
    if any(text is None for text in texts):
        return "Both sides changed it, and it is not text.\n", False
    return await _lines([mine, was or b"", new], variables)


async def _lines(versions: list[bytes], variables: Mapping[str, str]) -> tuple[str, bool]:
    with tempfile.TemporaryDirectory(prefix="hermes-merge-") as folder:
        paths = [Path(folder, name) for name in ("yours", "base", "new")]
        for path, content in zip(paths, versions, strict=True):
            await asyncio.to_thread(path.write_bytes, content)
        labels = [part for path in paths for part in ("-L", path.name)]
        words = [found_git(variables), "merge-file", "-p", "--diff3", *labels, *map(str, paths)]
        try:
            ended = await run(words, env={"LC_ALL": "C.UTF-8"}, cwd=folder, seconds=SECONDS)
        except (OSError, TimeoutError) as error:
            raise HubError(f"git merge-file failed: {str(error) or 'it took too long'}.") from error
    if ended.code >= FAILED:
        raise HubError(f"git merge-file failed: {ended.err.decode('utf-8', 'replace').strip()[:300]}")
    return ended.out.decode("utf-8", "replace"), ended.code == 0


def _still_a_skill(name: str, content: bytes | None) -> list[Conflict]:
    if content is None:
        return [Conflict(file=FILE, text="It was removed at its source.\n")]
    try:
        read(content.decode(), name)
    except BadSkill as error:
        return [Conflict(file=FILE, text=f"What the merge gives is not a skill: {error}\n")]
    return []


TAG = "refs/tags/"


class Status(StrEnum):
    """Update status of a skill."""

    CURRENT = "up to date"
    NEWER = "newer there"
    MOVED = "tag was moved"
    GONE = "gone there"
    SILENT = "cannot be reached"
    FIXED = "fixed to a commit"


class Keep(StrEnum):
    """How an update treats a skill changed locally: `neither` merges, and changes nothing if that conflicts; `mine`
    keeps all local files as they are; `theirs` replaces them all, and deletes files added locally."""

    NEITHER = "neither"
    MINE = "mine"
    THEIRS = "theirs"


class Conflicted(HubError):
    """An update with conflicts that a person has to resolve; nothing was changed."""

    def __init__(self, name: str, conflicts: tuple[Conflict, ...]) -> None:
        files = ", ".join(conflict.file for conflict in conflicts)
        super().__init__(
            f"`{name}` was not updated: you and its source changed the same in {files}. "
            f"Keep one with `hermes skills update {name} --keep mine` or `--keep theirs`."
        )
        self.conflicts = conflicts


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Update status of an installed skill, with details in `words`."""

    name: str
    status: Status
    commit: str
    there: str = ""
    pinned: bool = False
    changed: bool = False
    words: str = ""


async def standing(hub: Hub, name: str) -> Standing:
    """Check one skill for updates; failures are part of the status. Raises `HubError` for one that is not installed."""
    entry = installed(await asyncio.to_thread(hub.lock.get), name)
    pinned = name in (await asyncio.to_thread(hub.writer.library.state.get)).pinned
    changed = await hub.copy(name) is not None
    status, there, words = Status.FIXED, "", ""
    if entry.ref:
        try:
            offer = await offered(hub, name, entry)
            there = offer.commit
            status = await _compared(hub, entry, offer)
        except Missing as error:
            status, words = Status.GONE, str(error)
        except HubError as error:
            status, words = Status.SILENT, str(error)
    return Standing(
        name=name, status=status, commit=entry.commit, there=there, pinned=pinned, changed=changed, words=words
    )


class Missing(HubError):
    """Raised when a source no longer offers an installed skill."""


async def offered(hub: Hub, name: str, entry: Entry) -> Offer:
    """The skill at its source now, wherever in it. Raises `Missing`, `HubError`."""
    tap = Tap(name=entry.tap, url=entry.url, trust=entry.trust, ref=entry.ref)
    catalog = await hub.sources.catalog(tap)
    there = [each for each in catalog.skills if each.name == name]
    same = [each for each in there if each.path == entry.path] or there
    if not same:
        raise Missing(f"{entry.url} holds no skill `{name}` any more; what you have stays.")
    if same[0].problem:
        raise HubError(f"`{name}` cannot be used as it is there now: {same[0].problem}")
    return Offer(tap=tap, skill=same[0], commit=catalog.commit, ref=catalog.ref)


async def updated(hub: Hub, held: Held, by: By, *, insist: bool = False, keep: Keep = Keep.NEITHER) -> int:
    """Take what was held in place of what is installed, for the holder of the hub's lock; how many files of the changed
    copy that changed. Raises `Conflicted`, or `HubError` where it may not be taken; nothing was changed then."""
    entry = installed(await asyncio.to_thread(hub.lock.get), held.name)
    new_reasons = [why for why in held.against if why not in entry.accepted]
    if new_reasons and not insist:
        raise HubError(f"`{held.name}` was not updated: {'; '.join(new_reasons[:5])}")
    copy = await hub.copy(held.name)
    merged = await _merged(hub, copy, entry.hash, held.files, keep) if copy else None
    await asyncio.to_thread(hub.depot.take, held.folder, held.entry.hash)
    if copy is not None and merged is not None:
        await _apply(hub, copy, merged, Layer.HUB, held.entry.hash, by)
    before = (entry.commit, entry.hash) if entry.hash != held.entry.hash else entry.before
    new = msgspec.structs.replace(held.entry, accepted=held.against, before=before)
    old = {} if copy else await asyncio.to_thread(hub.depot.files, entry.hash, held.name)
    await hub.recorded(held.name, old, {} if copy else held.files, by, new, "update")
    return len(merged or ())


async def put_back(hub: Hub, name: str, by: By) -> str:
    """Undo the last update of a skill that nobody changed; what was done, in words. Raises `HubError`."""
    entry = installed(await asyncio.to_thread(hub.lock.get), name)
    if entry.before is None:
        raise HubError(f"`{name}` was not updated since it was installed.")
    if await hub.copy(name) is not None:
        raise HubError(f"`{name}` has changes of yours: `hermes skills history {name}` and `revert` take them back.")
    commit, found = entry.before
    files = await asyncio.to_thread(hub.depot.files, found, name)
    if hash_of_files(files) != found:
        raise HubError(f"The files of `{name}` at {commit[:12]} are gone.")
    old = await asyncio.to_thread(hub.depot.files, entry.hash, name)
    back = msgspec.structs.replace(entry, commit=commit, hash=found, before=(entry.commit, entry.hash))
    await hub.recorded(name, old, files, by, back, "put back")
    return f"back at {commit[:12]}, instead of {entry.commit[:12]}"


async def behind(hub: Hub) -> list[tuple[SkillHeader, SkillHeader]]:
    """The changed copies of bundled or external skills whose original changed since: copy and original."""
    state = await asyncio.to_thread(hub.writer.library.state.get)
    found = []
    for name in state.bases:
        layer, base = base_of(state, name)
        headers = await hub.writer.library.same_name(name)
        if not layer or layer == Layer.HUB or not headers or headers[0].layer is not Layer.USER:
            continue
        for original in headers[1:]:
            if original.layer == layer and await asyncio.to_thread(hash_of_folder, original.path) != base:
                found.append((headers[0], original))
                break
    return found


async def follow(hub: Hub, copy: SkillHeader, original: SkillHeader, by: By, keep: Keep = Keep.NEITHER) -> int:
    """Merge the changes of the original into the copy; the number of changed files. Raises `Conflicted`."""
    files = await asyncio.to_thread(files_of_folder, original.path)
    base = base_of(await asyncio.to_thread(hub.writer.library.state.get), copy.name)[1]
    merged = await _merged(hub, copy, base, files, keep)
    found = hash_of_files(files)
    await asyncio.to_thread(hub.depot.keep, copy.name, files, found)
    await _apply(hub, copy, merged, original.layer, found, by)
    return len(merged)


async def _compared(hub: Hub, entry: Entry, offer: Offer) -> Status:
    if offer.commit == entry.commit:
        return Status.CURRENT
    if entry.ref.startswith(TAG):
        return Status.MOVED
    files = await hub.sources.files(entry.url, offer.commit, offer.skill.path)
    return Status.CURRENT if hash_of_files(files) == entry.hash else Status.NEWER


async def _merged(hub: Hub, copy: SkillHeader, base: str, theirs: Files, keep: Keep) -> dict[str, bytes | None]:
    state = await asyncio.to_thread(hub.writer.library.state.get)
    # What the copy was last brought together with, where an update died half-way.
    was = await asyncio.to_thread(hub.depot.files, base_of(state, copy.name)[1] or base, copy.name)
    ours = await asyncio.to_thread(files_of_folder, copy.path)
    if keep is Keep.MINE:
        return {}
    if keep is Keep.THEIRS:
        gone: dict[str, bytes | None] = {file: None for file in ours if file not in theirs}
        return {**gone, **{file: each.content for file, each in theirs.items() if ours.get(file) != each}}
    return await merge(copy.name, was, ours, theirs, hub.sources.variables)


async def _apply(
    hub: Hub, copy: SkillHeader, merged: dict[str, bytes | None], layer: Layer, found: str, by: By
) -> None:
    if merged:
        who = By(author=Author.HUB, principal=by.principal)
        await hub.writer.update(copy.name, merged, who)
    await hub.writer.library.state.change(based(copy.name, layer.value, found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Options of an update: who wins conflicts, whether a moved tag is followed, whether the last update is undone
    instead, whether scanner findings are accepted."""

    keep: Keep = Keep.NEITHER
    moved: bool = False
    back: bool = False
    insist: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of updating one skill, in words; `ok` is False where a person has to look."""

    name: str
    ok: bool
    did: str
    conflicts: tuple[Conflict, ...] = ()


async def update_all(hub: Hub, names: tuple[str, ...], by: By, wish: Wish) -> list[Outcome]:
    """Update these skills, or (none named) every installed one and every changed copy with a newer original."""
    known = (await asyncio.to_thread(hub.lock.get)).skills
    copies = {copy.name: (copy, original) for copy, original in await behind(hub)}
    return [
        await _one(hub, name, copies.get(name) if name not in known else None, by, wish)
        for name in names or (*sorted(known), *sorted(set(copies) - set(known)))
    ]


async def _one(hub: Hub, name: str, copy: tuple[SkillHeader, SkillHeader] | None, by: By, wish: Wish) -> Outcome:
    try:
        return Outcome(name=name, ok=True, did=await _updated(hub, name, copy, by, wish))
    except HermesError as error:
        conflicts = error.conflicts if isinstance(error, Conflicted) else ()
        return Outcome(name=name, ok=False, did=str(error), conflicts=conflicts)


async def _updated(hub: Hub, name: str, copy: tuple[SkillHeader, SkillHeader] | None, by: By, wish: Wish) -> str:
    """Update one skill; what was done, in words. Raises `HermesError` with what a person has to look at."""
    if name in (await asyncio.to_thread(hub.writer.library.state.get)).pinned:
        return f"pinned, left as it is; `hermes skills unpin {name}` frees it"
    if copy is not None:
        return f"your copy follows its original, {await follow(hub, *copy, by, wish.keep)} files changed"
    if wish.back:
        return await put_back(hub, name, by)
    found = await standing(hub, name)
    if found.status in (Status.CURRENT, Status.FIXED):
        return found.status.value
    if found.status in (Status.GONE, Status.SILENT):
        raise HubError(found.words)
    if found.status is Status.MOVED and not wish.moved:
        moved = f"its tag pointed at {found.commit[:12]} and points at {found.there[:12]} now"
        raise HubError(f"{moved}; `--moved` follows it")
    held = await hub.hold(await offered(hub, name, installed(await asyncio.to_thread(hub.lock.get), name)))
    count = await updated(hub, held, by, insist=wish.insist, keep=wish.keep)
    merged = f", merged into your copy ({count} files changed)" if found.changed else ""
    return f"{found.commit[:12]} -> {held.entry.commit[:12]}{merged}"
