"""Skill library of a home: discovery on disk, search index, and reading of skills."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import ToolError
from hermes_agent.core.messages import Origin, Quoted
from hermes_agent.host.tasks import spawn
from hermes_agent.skills.depot import StateFile, base_of, own_files
from hermes_agent.skills.format import BadSkill, read, text_of
from hermes_agent.skills.skill import FILE, Found, Layer, Occasion, Ours, Places, Root, Skill, SkillHeader, found_in
from hermes_agent.store.skills_index import Indexed, Listed, SkillsIndex

GENERAL = "general"
BATCH = 200
PATIENCE = 1.0
"""Seconds that a question waits for changed files to be read; after that it is answered from what is known."""
REST = 20
"""A look at all folders is taken again after so many times the time that it took."""
KEPT = 64
PAGE = 500
OFFERED = 5
ANYWHERE = msgspec.json.encode(Ours()).partition(b',"tags":[],')[2].partition(b'"parameters"')[0]
"""Stands in the card of a skill that fits every occasion, where its text cannot stand: quotes are escaped there."""


class NoSkill(ToolError):
    """Raised when no skill has the requested name."""

    kind = "no_skill"


class NotHere(ToolError):
    """The skill exists, but for another channel, kind of chat, or system."""

    kind = "not_here"


Vouches = Callable[[str, bytes], Awaitable[bool]]
"""Whether somebody known answers for that content of an item, such as `name/SKILL.md`."""


class Library:
    """Finds and reads skills by name. A session sees those of the home, installed ones, its project's, external and
    bundled ones; the earlier layer wins. `vouches` is asked about the home's files, where there is a ledger."""

    def __init__(
        self,
        *,
        index: SkillsIndex,
        places: Places,
        state: StateFile,
        clock: Clock,
        disabled: Collection[str] = (),
        vouches: Vouches | None = None,
    ) -> None:
        self.places, self.state, self._vouches = places, state, vouches
        self._index, self._clock, self.disabled = index, clock, frozenset(disabled)
        self._read: OrderedDict[tuple[str, str], Skill] = OrderedDict()
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._rested: dict[str, float] = {}
        self._roots: dict[str, tuple[str, ...]] = {}
        self._pages: dict[tuple[str, str, str, int], list[SkillHeader]] = {}
        self._seen: dict[str, int] = {}
        self._known: dict[str, tuple[int, ...]] = {}

    async def find(self, name: str, workspace: str = "", occasion: Occasion | None = None) -> SkillHeader:
        """The skill of this name. Raises `NoSkill` with the nearest names, or `BadSkill`; with an occasion `NotHere`
        for one that does not fit it."""
        await self.refresh(workspace)
        roots = await self._keys(workspace)
        hidden = self._hidden()
        found = [row for row in await self._index.named(name, roots) if row.folder not in hidden]
        good = next((row for row in found if not row.problem), None)
        if good is not None:
            header = header_of(good)
            if occasion is not None and (where := occasion.elsewhere(header.ours)):
                quoted = Quoted(text=where, origin=await self.origin_of(header))
                raise NotHere(f"The skill `{name}` is", quoted=quoted)
            return header
        if found:
            quoted = Quoted(text=f"{found[0].folder}: {found[0].problem}", origin=Origin.TOOL)
            raise BadSkill(f"The skill `{name}` cannot be used:", quoted=quoted)
        headers = await self.candidates(name.replace("-", " "), workspace, occasion, 10)
        names = [header.name for header in (*headers, *await self.all(workspace, occasion))]
        near = get_close_matches(name, names, 3, 0.5)
        meant = (
            f"Did you mean {', '.join(f'`{each}`' for each in near)}?" if near else "skills_list names those there are."
        )
        raise NoSkill(f"There is no skill `{name[:80]}`.", hint=meant)

    async def same_name(self, name: str, workspace: str = "") -> tuple[SkillHeader, ...]:
        """Every skill of a name by precedence: the winner, then those that it shadows."""
        await self.refresh(workspace)
        return tuple(
            header_of(row) for row in await self._index.named(name, await self._keys(workspace)) if not row.problem
        )

    async def read(self, header: SkillHeader) -> Skill:
        """The parsed skill, cached by the state of the file. Raises `BadSkill`."""
        return await asyncio.to_thread(self._read_now, header)

    async def all(
        self,
        workspace: str = "",
        occasion: Occasion | None = None,
        *,
        family: str = "",
        after: str = "",
        limit: int = PAGE,
    ) -> list[SkillHeader]:
        """Skills by name; with an occasion those that fit it."""
        await self.refresh(workspace)
        found: list[SkillHeader] = []
        size = limit
        while True:
            page = await self._page(workspace, family, after, size)
            found += self._offered(page, occasion)
            if len(page) < size or len(found) >= limit:
                return found[:limit]
            after, size = page[-1].name, max(size, PAGE)

    async def families(self, workspace: str, occasion: Occasion) -> list[tuple[str, int]]:
        """Each family with the number of its skills that fit the occasion, the largest first."""
        await self.refresh(workspace)
        many: Counter[str] = Counter()
        for family, header, count in await self._index.families(await self._keys(workspace), ANYWHERE):
            if not header or self._offered([msgspec.json.decode(header, type=SkillHeader)], occasion):
                many[family] += count
        return sorted(many.items(), key=lambda family: (-family[1], family[0]))

    async def candidates(
        self, task: str, workspace: str = "", occasion: Occasion | None = None, limit: int = OFFERED
    ) -> list[SkillHeader]:
        """The skills that fit a task in anybody's words, the best first."""
        await self.refresh(workspace)
        rows = await self._index.search(task, await self._keys(workspace), limit * 2)
        return self._offered([header_of(row) for row in rows], occasion)[:limit]

    async def broken(self, workspace: str = "") -> list[tuple[str, str]]:
        """The folders with an invalid skill, and the reasons."""
        await self.refresh(workspace)
        return [(row.folder, row.problem) for row in await self._index.problems(await self._keys(workspace))]

    async def forget(self, workspace: str = "") -> None:
        """Drop all caches and rescan the folders now, because something was changed."""
        self._rested.clear()
        self._read.clear()
        self._seen.clear()
        await self.refresh(workspace, patience=None)

    async def refresh(self, workspace: str = "", *, patience: float | None = PATIENCE) -> None:
        """Rescan the folders; waits at most `patience` seconds (None: no limit)."""
        if self._clock.monotonic() < self._rested.get(workspace, 0.0):
            return
        task = self._looking.get(workspace)
        if task is None or task.done():
            task = self._looking[workspace] = spawn(self._refresh(workspace), name="skills: look at the folders")
        await asyncio.wait({task}, timeout=patience)
        if task.done():
            self._looking.pop(workspace, None)
            task.result()

    async def close(self) -> None:
        """Stop scanning and close the index."""
        for task in self._looking.values():
            task.cancel()
        if self._looking:
            await asyncio.wait(self._looking.values())
        await self._index.close()

    async def _page(self, workspace: str, family: str, after: str, limit: int) -> list[SkillHeader]:
        page = (workspace, family, after, limit)
        if page not in self._pages:
            rows = await self._index.page(await self._keys(workspace), family=family, after=after, limit=limit)
            if len(self._pages) >= KEPT:
                self._pages.clear()
            self._pages[page] = [header_of(row) for row in rows]
        return self._pages[page]

    async def _refresh(self, workspace: str) -> None:
        began = self._clock.monotonic()
        here = await asyncio.to_thread(lambda: [(root, list(found_in(root))) for root in self.places.roots(workspace)])
        self._roots[workspace] = tuple(root.key for root, _ in here)
        stamps = await self._index.stamps(self._roots[workspace])
        for root, found in here:
            await self._update(root, found, stamps[root.key])
        seen = hash(tuple((root.key, str(each.folder), each.stamp) for root, found in here for each in found))
        if self._seen.get(workspace) != seen:
            self._seen[workspace] = seen
            self._pages.clear()
        took = self._clock.monotonic() - began
        if len(self._rested) > KEPT:
            self._rested.clear()
            self._roots = {workspace: self._roots[workspace]}
            self._seen = {workspace: seen}
        self._rested[workspace] = self._clock.monotonic() + REST * took

    async def _update(self, root: Root, found: Sequence[Found], known: Mapping[str, str]) -> None:
        news = [each for each in found if known.get(str(each.folder)) != each.stamp]
        gone = list(known.keys() - {str(each.folder) for each in found})
        for first in range(0, max(len(news), len(gone[:1])), BATCH):
            batch = await asyncio.to_thread(_indexed, root, news[first : first + BATCH])
            await self._index.update(batch, gone)
            gone = []

    async def origin_of(self, header: SkillHeader, *, whole: bool = True) -> Origin:
        """The label of a skill's text, or of its SKILL.md alone; a copy of somebody else's skill stays theirs, and what
        nobody known wrote in the home is nobody's."""
        layer, _ = base_of(self.state.get(), header.name)
        origin = Layer(layer).origin if header.layer is Layer.USER and layer else header.layer.origin
        if header.layer is not Layer.USER or origin is not Origin.SKILL or (vouches := self._vouches) is None:
            return origin
        files = {header.path / FILE, *(await asyncio.to_thread(own_files, header.path) if whole else ())}
        known = [await self._is_known(header, path, vouches) for path in files]
        return Origin.SKILL if all(known) else Origin.TOOL

    async def _is_known(self, header: SkillHeader, path: Path, vouches: Vouches) -> bool:
        """Whether somebody known answers for a file as it is; asked again when it changed."""
        try:
            found = await asyncio.to_thread(path.stat)
            stamp = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
            if self._known.get(str(path)) != stamp:
                item = f"{header.name}/{path.relative_to(header.path)}"
                if not await vouches(item, await asyncio.to_thread(path.read_bytes)):
                    return False
                self._known[str(path)] = stamp
        except OSError:
            return False
        return True

    def _offered(self, found: Sequence[SkillHeader], occasion: Occasion | None) -> list[SkillHeader]:
        hidden = self._hidden()
        headers = [header for header in found if header.folder not in hidden and header.name not in self.disabled]
        return [header for header in headers if occasion is None or not occasion.why_not(header.ours)]

    def _hidden(self) -> frozenset[str]:
        """The bundled skills that the person took away."""
        removed = self.state.get().removed
        return frozenset(str(self.places.bundled / name) for name in removed)

    async def _keys(self, workspace: str) -> tuple[str, ...]:
        if workspace not in self._roots:
            roots = await asyncio.to_thread(self.places.roots, workspace)
            self._roots[workspace] = tuple(root.key for root in roots)
        return self._roots[workspace]

    def _read_now(self, header: SkillHeader) -> Skill:
        path = header.path / FILE
        try:
            state = path.stat()
        except OSError as error:
            raise NoSkill(f"The skill `{header.name}` is gone: its file cannot be read.") from error
        key = (header.folder, f"{state.st_mtime_ns}.{state.st_size}.{state.st_ino}")
        if key not in self._read:
            self._read[key] = _read(path, header.name)
        self._read.move_to_end(key)
        while len(self._read) > KEPT:
            self._read.popitem(last=False)
        return self._read[key]


def _read(path: Path, name: str) -> Skill:
    """A skill from its file. What is said of a file that is none quotes it."""
    try:
        return read(text_of(path), path.parent.name)
    except BadSkill as error:
        quoted = Quoted(text=str(error), origin=Origin.TOOL)
        raise BadSkill(f"The skill `{name}` cannot be used:", quoted=quoted) from error


def header_of(row: Listed) -> SkillHeader:
    """The header stored in an index row."""
    return msgspec.json.decode(row.card, type=SkillHeader)


def _indexed(root: Root, news: Sequence[Found]) -> list[Indexed]:
    return [indexed(root, each) for each in news]


def indexed(root: Root, found: Found) -> Indexed:
    """A skill as an index entry. Blocks."""
    folder, name = str(found.folder), found.folder.name
    try:
        skill = read(text_of(Path(folder) / FILE), name)
    except BadSkill as error:
        return Indexed(folder=folder, root=root.key, name=name, stamp=found.stamp, problem=str(error))
    family = skill.ours.category or found.category or GENERAL
    header = SkillHeader(
        name=skill.name,
        description=skill.description,
        folder=folder,
        layer=Layer(root.layer),
        family=family,
        ours=skill.ours,
    )
    return Indexed(
        folder=folder,
        root=root.key,
        name=skill.name,
        stamp=found.stamp,
        family=family,
        about=" ".join((skill.description, *skill.ours.tags)),
        body=skill.body,
        card=msgspec.json.encode(header),
    )


HOW = """\
# Skills
Procedures that were worked out before, by this person, by you or by others. When one fits the task, load it with \
skill_view before you begin and follow it. What may fit a message stands beside it; skills_list(query) finds others. \
After a task of five or more tool calls, a tricky fix, or a way that you had to find out, keep it with skill_manage; \
where a loaded skill proves wrong, patch it at once."""
PINNED = "Pinned by the person; load them first where they fit:"
WHOLE_UP_TO = 24
"""So many skills are named one by one; of more only the families are, so that the prefix does not grow with them."""
LONGEST_INDEX = 2_400
"""Characters of the names or families; with what is pinned and the words above about 900 tokens."""
MOST_FAMILIES = 60
MOST_PINNED = 8
FEWEST_WORDS = 2


async def index_text(library: Library, workspace: str, occasion: Occasion) -> tuple[str, tuple[str, ...]]:
    """The skills section of a new prompt prefix (empty without skills), and the names in it."""
    headers = await library.all(workspace, occasion, limit=WHOLE_UP_TO + 1)
    if not headers:
        return "", ()
    if len(headers) <= WHOLE_UP_TO:
        pins = [header.name for header in await _pinned(library, workspace, occasion)]
        first = [f"{PINNED} {', '.join(pins)}"] if pins else []
        named = _fitting([f"- {await _shown(library, header)}" for header in headers], "more: skills_list")
        return "\n".join([HOW, named, *first]), tuple(header.name for header in headers)
    # The largest, by name: a skill more changes no order.
    families = sorted(family for family, _ in (await library.families(workspace, occasion))[:MOST_FAMILIES])
    lines = [f"Families (skills_list(family) shows one): {_fitting(families, '...', ', ')}"]
    pinned = await _pinned(library, workspace, occasion)
    if pinned:
        lines += [PINNED, *[f"- {await _shown(library, header)}" for header in pinned]]
    return "\n".join([HOW, *lines]), tuple(header.name for header in pinned)


class Candidates:
    """Source of the prompt's tail that lists the skills that fit the person's message."""

    name = "Skills that may fit"
    origin = Origin.SKILL

    def __init__(self, library: Library, workspace: str, occasion: Occasion) -> None:
        self._library, self._workspace, self._occasion = library, workspace, occasion

    async def words(self, session: str, heard: str) -> str:  # noqa: ARG002  the same for every session
        """A line per skill; empty where none fits, or the message is too short."""
        if len(heard.split()) < FEWEST_WORDS:
            return ""
        headers = await self._library.candidates(heard, self._workspace, self._occasion)
        return "\n".join([f"- {await _shown(self._library, header)}" for header in headers])


def whole_line(header: SkillHeader) -> str:
    """A skill as one line, with its origin if not the home."""
    return header.line if header.layer in (Layer.USER, Layer.BUNDLED) else f"{header.line} [{header.layer.value}]"


async def _shown(library: Library, header: SkillHeader) -> str:
    """A skill as one line that any prompt may hold: a stranger's words about their skill do not speak there."""
    if await library.origin_of(header, whole=False) is Origin.SKILL:
        return header.line
    whose = "not the home's own" if header.layer is Layer.USER else header.layer.value
    return f"{header.name} [{whose}; skill_view tells what for]"


async def _pinned(library: Library, workspace: str, occasion: Occasion) -> list[SkillHeader]:
    found: list[SkillHeader] = []
    for name in library.state.get().pinned:
        headers = await library.same_name(name, workspace)
        found += [header for header in headers[:1] if not occasion.why_not(header.ours)]
    return found[:MOST_PINNED]


def _fitting(texts: Sequence[str], more: str, between: str = "\n") -> str:
    kept: list[str] = []
    room = LONGEST_INDEX
    for text in texts:
        room -= len(text) + len(between)
        if room < 0:
            return between.join([*kept, more])
        kept.append(text)
    return between.join(kept)
