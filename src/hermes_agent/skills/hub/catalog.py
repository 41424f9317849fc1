"""Catalog of the skills in a repository at one commit, cached until the commit changes."""

from __future__ import annotations

import asyncio
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from hermes_agent.host.files import write_private
from hermes_agent.skills.depot import LARGEST_FILE, is_hidden
from hermes_agent.skills.format import LONGEST_TEXT, BadSkill, read
from hermes_agent.skills.hub.git import HubError, Repository, TreeEntry
from hermes_agent.skills.skill import FILE, FOLDERS
from hermes_agent.skills.state import whole

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
