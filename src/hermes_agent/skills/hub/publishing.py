"""Publishes a skill to a repository: a branch with one commit, and the same change as a patch."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.scanner.finding import Category, Severity
from hermes_agent.skills.depot import Files, files_of_folder, text_or_none
from hermes_agent.skills.format import read
from hermes_agent.skills.hub.git import HubError, Repository
from hermes_agent.skills.hub.installing import report
from hermes_agent.skills.hub.sources import Sources, Tap
from hermes_agent.skills.skill import FILE

PREFIX = "hermes"
USUAL = "skills"
"""The folder for skills of a repository that has none yet."""
NOBODY = ("Hermes", "hermes@localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A branch on top of `base`, its patch, and whether the repository has the branch."""

    name: str
    branch: str
    base: str
    commit: str
    path: str
    patch: bytes
    pushed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """Author and message of a publication, and whether to push it; an empty message is made from the skill."""

    author: tuple[str, str] = NOBODY
    message: str = ""
    push: bool = False


async def publish(sources: Sources, tap: Tap, name: str, folder: Path, letter: Letter) -> Published:
    """Publish a skill on a new branch. Raises `HubError` where it contains secrets, violates the format, or is
    unchanged in the repository."""
    files = await asyncio.to_thread(files_of_folder, folder)
    await asyncio.to_thread(_fit, name, files)
    catalog = await sources.catalog(tap)
    repository = sources.repository(tap.url)
    there = next((each.path for each in catalog.skills if each.name == name), None)
    path = there if there is not None else _place(name, [each.path for each in catalog.skills])
    commit = await _committed(repository, catalog.commit, path, files, letter, name)
    branch = f"refs/heads/{PREFIX}/{name}"
    await repository.run("update-ref", branch, commit)
    patch = await repository.run("format-patch", "-1", "--stdout", "--binary", commit)
    if letter.push:
        await repository.run(
            "push", "--quiet", "--", repository.address.url, f"+{commit}:{branch}", seconds=repository.limits.seconds
        )
    return Published(
        name=name,
        branch=branch.removeprefix("refs/heads/"),
        base=catalog.commit,
        commit=commit,
        path=path,
        patch=patch,
        pushed=letter.push,
    )


def _fit(name: str, files: Files) -> None:
    """Raise for what others should not get."""
    if FILE not in files:
        raise HubError(f"`{name}` has no {FILE}.")
    seen = report(name, files).seen
    grave = [each.words for each in seen if each.severity is Severity.BLOCK or Category.SECRET.value in each.what]
    if grave:
        raise HubError(f"`{name}` is not published: {'; '.join(grave[:5])}")
    beyond = read(text_or_none(files[FILE].content) or "", name).beyond
    if beyond:
        raise HubError(
            f"`{name}` has fields that the format does not know ({', '.join(beyond)}): put them in metadata."
        )


def _place(name: str, paths: list[str]) -> str:
    """Where most of the others stand."""
    above = [path.rpartition("/")[0] for path in paths] or [USUAL]
    folder = max(sorted(set(above)), key=above.count)
    return f"{folder}/{name}" if folder else name


async def _committed(repository: Repository, base: str, path: str, files: Files, letter: Letter, name: str) -> str:
    index = repository.folder / f"index.{os.urandom(6).hex()}"
    more = {"GIT_INDEX_FILE": str(index), **_who(letter.author)}
    try:
        await repository.run("read-tree", base, more=more)
        old = await repository.tree(base, path) if path else []
        lines = [f"0 {'0' * 40}\t{entry.path}\n" for entry in old]
        for file, each in sorted(files.items()):
            oid = (await repository.run("hash-object", "-w", "--stdin", data=each.content)).decode().strip()
            lines.append(f"{'100755' if each.runs else '100644'} {oid}\t{f'{path}/{file}' if path else file}\n")
        await repository.run("update-index", "--index-info", data="".join(lines).encode(), more=more)
        tree = (await repository.run("write-tree", more=more)).decode().strip()
        if tree == (await repository.run("rev-parse", f"{base}^{{tree}}")).decode().strip():
            raise HubError(f"{repository.address.url} has `{name}` already as it is.")
        message = letter.message or f"{'Update' if old else 'Add'} the skill {name}"
        return (await repository.run("commit-tree", tree, "-p", base, "-m", message, more=more)).decode().strip()
    finally:
        index.unlink(missing_ok=True)


def _who(author: tuple[str, str]) -> dict[str, str]:
    name, mail = author
    return {
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": mail,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": mail,
    }
