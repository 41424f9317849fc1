"""What the taps offer: catalogs of repositories, kept per commit and searched, and the files of a skill at a commit."""

from __future__ import annotations

import asyncio
import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.paths import write_private
from hermes_agent.skills.depot import HUB, LARGEST_FILE, Content, Files, JsonFile, Trust, is_hidden, whole
from hermes_agent.skills.format import LONGEST_TEXT, BadSkill, read
from hermes_agent.skills.hub.git import HubError, Repository, TreeEntry, address_of
from hermes_agent.skills.skill import FILE, FOLDERS

MOST_FILES = 200
LARGEST_SKILL = 16 << 20
DEEPEST = 8
LINK, MODULE, RUNS = "120000", "160000", "100755"
FORBIDDEN = frozenset('\\:*?"<>|')
"""What cannot stand in a file's name everywhere."""


def select_files(entries: Sequence[TreeEntry], path: str) -> dict[str, TreeEntry]:
    """The files of a skill's folder by their path in it, without hidden ones. Raises `HubError` with every reason
    why they cannot be used."""
    inside = {entry.path.removeprefix(f"{path}/" if path else ""): entry for entry in entries}
    shown = {name: entry for name, entry in inside.items() if not is_hidden(name)}
    found = [*_too_much(shown), *(why for name, entry in shown.items() if (why := _wrong(name, entry)))]
    found += _collisions(shown)
    if FILE not in shown:
        found.insert(0, f"there is no {FILE}")
    if found:
        more = f", and {len(found) - 5} more" if len(found) > 5 else ""
        raise HubError(f"The skill in `{path or '.'}` cannot be taken: {'; '.join(found[:5])}{more}.")
    return shown


def _too_much(entries: Mapping[str, TreeEntry]) -> list[str]:
    found = []
    if len(entries) > MOST_FILES:
        found.append(f"it has {len(entries):,} files, at most {MOST_FILES} are taken")
    size = sum(entry.size for entry in entries.values())
    if size > LARGEST_SKILL:
        found.append(f"it has {size:,} bytes, at most {LARGEST_SKILL:,} are taken")
    return found


def _wrong(name: str, entry: TreeEntry) -> str:
    parts = PurePosixPath(name).parts
    if entry.kind == LINK:
        return f"`{name[:80]}` is a link"
    if entry.kind == MODULE:
        return f"`{name[:80]}` is another repository"
    if entry.size > LARGEST_FILE:
        return f"`{name[:80]}` has {entry.size:,} bytes, at most {LARGEST_FILE:,} are taken"
    odd = any(each in FORBIDDEN or not each.isprintable() for each in name)
    if odd or ".." in parts or len(parts) > DEEPEST or any(len(part.encode()) > 200 for part in parts):
        return f"`{name[:80]!a}` is not a name for a file"
    return ""


def _collisions(names: Iterable[str]) -> list[str]:
    seen: dict[str, str] = {}
    found = []
    for name in names:
        key = unicodedata.normalize("NFC", name).casefold()
        if key in seen:
            found.append(f"`{seen[key][:80]}` and `{name[:80]}` are one name where upper and lower case are the same")
        seen[key] = name
    return found


MOST_SKILLS = 5_000
NAME_COUNTS = 4
WORD = re.compile(r"[^\W_]+")


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """A skill in a repository; `problem` says why it cannot be used (empty: it can)."""

    name: str
    path: str
    description: str = ""
    problem: str = ""


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """The skills of one commit. `at` is when it was fetched, in seconds since 1970, `files` the number of files in
    the repository, `left_out` the number of skills over the limit."""

    commit: str
    ref: str
    at: float
    files: int = 0
    left_out: int = 0
    skills: tuple[Offered, ...] = ()


def kept(folder: Path, ref: str) -> Catalog | None:
    """The cached catalog of a repository; None where there is none. Blocks."""
    return whole(_file(folder, ref), Catalog)


async def catalog_of(repository: Repository, ref: str, now: float, most: int = MOST_SKILLS) -> Catalog:
    """Fetch a repository, and read every SKILL.md if the commit is new. Raises `HubError`."""
    at = await repository.fetch(ref)
    before = await asyncio.to_thread(kept, repository.folder, ref)
    if before is not None and before.commit == at.commit:
        made = msgspec.structs.replace(before, at=now, ref=at.ref)
    else:
        entries = await repository.tree(at.commit)
        heads = sorted(_heads(entries), key=lambda entry: (entry.path.count("/"), entry.path))
        skills = await _read(repository, heads[:most])
        left = max(len(heads) - most, 0)
        made = Catalog(commit=at.commit, ref=at.ref, at=now, files=len(entries), left_out=left, skills=skills)
    await asyncio.to_thread(write_private, _file(repository.folder, ref), msgspec.json.encode(made), durable=False)
    return made


def found(skills: Iterable[Offered], words: str) -> list[Offered]:
    """The skills that contain any of the words, most matches first; a match in the name counts most."""
    wanted = [word.lower() for word in WORD.findall(words)]
    scored = [(_score(skill, wanted), skill) for skill in skills]
    return [skill for score, skill in sorted(scored, key=lambda pair: (-pair[0], pair[1].name)) if score]


def _file(folder: Path, ref: str) -> Path:
    return folder / f"catalog-{hashlib.sha256(ref.encode()).hexdigest()[:8]}.json"


def _score(skill: Offered, wanted: Sequence[str]) -> int:
    name = WORD.findall(skill.name.lower())
    about = WORD.findall(skill.description.lower())
    return sum(
        NAME_COUNTS * any(each.startswith(word) for each in name) + any(each.startswith(word) for each in about)
        for word in wanted
    )


def _heads(entries: Iterable[TreeEntry]) -> Iterable[TreeEntry]:
    for entry in entries:
        path = PurePosixPath(entry.path)
        inside_skill = any(part in FOLDERS or part.startswith(".git") for part in path.parts[:-1])
        if path.name == FILE and entry.kind not in (LINK, MODULE) and not inside_skill:
            yield entry


async def _read(repository: Repository, heads: Sequence[TreeEntry]) -> tuple[Offered, ...]:
    small = [entry for entry in heads if entry.size <= LONGEST_TEXT * 4]
    contents = await repository.contents([entry.oid for entry in small]) if small else []
    texts = dict(zip((entry.path for entry in small), contents, strict=True))
    return await asyncio.to_thread(lambda: tuple(_offered(entry, texts.get(entry.path)) for entry in heads))


def _offered(entry: TreeEntry, content: bytes | None) -> Offered:
    path = str(PurePosixPath(entry.path).parent)
    path = "" if path == "." else path
    folder = PurePosixPath(path).name
    if content is None:
        return Offered(name=folder, path=path, problem=f"{FILE} has {entry.size:,} bytes.")
    try:
        # A skill at the top of its repository stands in a folder of any name.
        skill = read(content.decode(), folder)
        return Offered(name=skill.name, path=path, description=skill.description)
    except UnicodeDecodeError:
        return Offered(name=folder, path=path, problem=f"{FILE} is not UTF-8 text.")
    except BadSkill as error:
        return Offered(name=folder, path=path, problem=str(error))


NAME = re.compile(r"[\w.-]{1,64}(/[\w.-]{1,64})?", re.ASCII)


class Tap(msgspec.Struct, frozen=True, kw_only=True):
    """A repository with a name chosen by the person; `ref` is a branch or tag, empty for the main branch."""

    name: str
    url: str
    trust: Trust = Trust.COMMUNITY
    ref: str = ""


class Taps:
    """The taps of one home: the skill repositories that a person added. Reading them blocks."""

    def __init__(self, home: Path) -> None:
        self._file = JsonFile(home / HUB / "taps.json", tuple[Tap, ...], ())

    def all(self) -> tuple[Tap, ...]:
        """The taps in the order of their addition. Raises `HomeError` for a file that is not ours."""
        return self._file.get()

    def get(self, name: str) -> Tap:
        """The tap of that name. Raises `HubError` with the known names."""
        taps = self.all()
        for tap in taps:
            if tap.name == name:
                return tap
        there = ", ".join(f"`{tap.name}`" for tap in taps) or "none yet; `hermes skills tap add owner/repository`"
        raise HubError(f"There is no tap `{name[:80]}`. Taps: {there}.")

    async def add(self, tap: Tap) -> None:
        """Add a tap, or replace the one of its name. Raises `HubError` for an invalid name."""
        if not NAME.fullmatch(tap.name):
            raise HubError(f"`{tap.name[:80]}` is not a name for a tap: letters, digits, `.`, `-`, `_`, and one `/`.")
        await self._write(tap.name, tap)

    async def remove(self, name: str) -> Tap:
        """Remove a tap; skills installed from it stay."""
        tap = self.get(name)
        await self._write(name, None)
        return tap

    async def _write(self, name: str, tap: Tap | None) -> None:
        added = (tap,) if tap else ()
        await self._file.change(lambda old: (*(each for each in old if each.name != name), *added))


FRESH = 3600.0
"""Seconds for which a catalog is not asked for again by whoever only looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A skill of a tap, and the repository state that contains it."""

    tap: Tap
    skill: Offered
    commit: str
    ref: str


@dataclass(slots=True, kw_only=True)
class Sources:
    """The repositories of a home's taps, kept in `cache`. `tell` is called with what is being fetched and the bytes
    received."""

    taps: Taps
    cache: Path
    clock: Clock
    variables: Mapping[str, str]
    tell: Callable[[str, int], None] = lambda *_: None
    problems: list[str] = field(default_factory=list)
    """What could not be reached since this was made, a sentence each."""
    _fetched: dict[tuple[str, str], Catalog] = field(default_factory=dict)

    def repository(self, url: str) -> Repository:
        """The repository at an address. Raises `HubError` for an invalid one or a missing folder."""
        address = address_of(url)
        return Repository(
            address=address,
            folder=self._folder(address.url),
            variables=self.variables,
            tell=lambda size: self.tell(address.name, size),
        )

    async def catalog(self, tap: Tap, *, fresh: bool = True) -> Catalog:
        """The catalog of a tap, fetched once by this object; without `fresh` a fetch of the last hour is enough.
        Raises `HubError`."""
        key = (tap.url, tap.ref)
        if key not in self._fetched:
            repository = self.repository(tap.url)
            before = await asyncio.to_thread(kept, repository.folder, tap.ref)
            now = self.clock.now()
            if fresh or before is None or not 0 <= now - before.at < FRESH:
                self.tell(repository.address.name, 0)
                before = await catalog_of(repository, tap.ref, now)
            self._fetched[key] = before
        return self._fetched[key]

    async def offers(self, words: str = "", tap: str = "", *, fresh: bool = False) -> list[Offer]:
        """The skills of all taps, or of one, that match the words. For an unreachable tap the cached catalog is
        used, with a line in `problems`."""
        offers: list[Offer] = []
        for each in await self._chosen_taps(tap):
            catalog = await self._reached(each, fresh=fresh)
            skills = found(catalog.skills, words) if words else catalog.skills
            offers += [Offer(tap=each, skill=skill, commit=catalog.commit, ref=catalog.ref) for skill in skills]
        return offers

    async def find(self, spec: str, source: str = "", ref: str = "") -> Offer:
        """The current skill for `name`, `tap/name`, or a path in a repository. Raises `HubError`."""
        if source:
            address = address_of(source)
            known = [tap for tap in await self._chosen_taps("") if tap.url == address.url]
            taps = [known[0] if known else Tap(name=address.name, url=address.url)]
        else:
            taps = await self._chosen_taps("")
            mine = [tap for tap in taps if spec.startswith(f"{tap.name}/")]
            spec = spec.removeprefix(f"{mine[0].name}/") if mine else spec
            taps = mine[:1] or taps
        if not taps:
            raise HubError("There are no taps yet: `hermes skills tap add owner/repository`, or give --from.")
        there: list[Offer] = []
        for tap in taps:
            at = Tap(name=tap.name, url=tap.url, trust=tap.trust, ref=ref or tap.ref)
            # One tap that was named has to answer; among several the others may know.
            catalog = await self.catalog(at) if len(taps) == 1 else await self._reached(at, fresh=True)
            there += [Offer(tap=at, skill=skill, commit=catalog.commit, ref=catalog.ref) for skill in catalog.skills]
        return self._one(spec, there)

    async def files(self, url: str, commit: str, path: str) -> Files:
        """The files of a skill at a commit. Raises `HubError` where they cannot be used."""
        repository = self.repository(url)
        entries = select_files(await repository.tree(commit, path), path)
        contents = await repository.contents([entry.oid for entry in entries.values()])
        return {
            name: Content(content=content, runs=entry.kind == RUNS)
            for (name, entry), content in zip(entries.items(), contents, strict=True)
        }

    def _one(self, spec: str, there: list[Offer]) -> Offer:
        meant = [each for each in there if spec in (each.skill.name, each.skill.path)]
        usable = [each for each in meant if not each.skill.problem]
        if len(usable) > 1:
            names = ", ".join(f"{each.tap.name}/{each.skill.path}" for each in usable)
            raise HubError(f"`{spec}` is offered {len(usable)} times; say which: {names}")
        if usable:
            return usable[0]
        if meant:
            raise HubError(f"`{spec}` of {meant[0].tap.name} cannot be used: {meant[0].skill.problem}")
        near = get_close_matches(spec, [each.skill.name for each in there], 3, 0.5)
        hint = f" Did you mean {', '.join(f'`{name}`' for name in near)}?" if near else ""
        unreached = f" {' '.join(self.problems)}" if self.problems else ""
        raise HubError(f"No tap offers `{spec[:80]}`.{hint}{unreached}")

    async def _chosen_taps(self, name: str) -> list[Tap]:
        if name:
            return [await asyncio.to_thread(self.taps.get, name)]
        return list(await asyncio.to_thread(self.taps.all))

    async def _reached(self, tap: Tap, *, fresh: bool) -> Catalog:
        try:
            return await self.catalog(tap, fresh=fresh)
        except HubError as error:
            before = await asyncio.to_thread(kept, self._folder(tap.url), tap.ref)
            told = "what was known of it is used" if before else "nothing is known of it"
            self.problems.append(f"The tap `{tap.name}` did not answer, {told}: {error}")
            return before or Catalog(commit="", ref="", at=0.0)

    def _folder(self, url: str) -> Path:
        return self.cache / "hub" / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}.git"
