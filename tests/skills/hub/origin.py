"""What the tests of the hub share: real git repositories with skills, and a hub over a temporary home."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hermes_agent.core.clock import RandomIds, SystemClock
from hermes_agent.skills.depot import Entry, StateFile, Trust
from hermes_agent.skills.hub.installing import Held, Hub
from hermes_agent.skills.hub.sources import Sources, Tap, Taps
from hermes_agent.skills.library import Library
from hermes_agent.skills.skill import Places
from hermes_agent.skills.versions import SkillVersions
from hermes_agent.skills.writing import Writer
from hermes_agent.store.database import open_store
from hermes_agent.store.skills_index import SkillsIndex
from hermes_agent.store.versions import Author, By
from tests.skills.shelf import skill_text

OWNER = By(author=Author.OWNER, principal="cli:owner")
AGENT = By(author=Author.FOREGROUND, session="s1", key="k")
VARIABLES = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent"}
WHO = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b"}


@dataclass
class Origin:
    """A repository of somebody else, with a worktree."""

    root: Path

    def git(self, *words: str) -> str:
        env = {**VARIABLES, **WHO, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(["git", *words], cwd=self.root, env=env, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str | bytes | None], message: str = "Change") -> str:
        """Write files (None: remove), commit all; the commit."""
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def skill(self, name: str, body: str = "Do it.", description: str = "", **more: str | bytes) -> str:
        """A skill under `skills/`; the commit."""
        files = {f"skills/{name}/SKILL.md": skill_text(name, description, body)}
        return self.commit({**files, **{f"skills/{name}/{file}": content for file, content in more.items()}})


def origin(root: Path) -> Origin:
    """An empty repository with the branch main."""
    root.mkdir(parents=True)
    made = Origin(root)
    made.git("init", "--quiet", "--initial-branch=main")
    return made


@dataclass
class Place:
    """A home with a hub, and one tap `them` on `there`."""

    root: Path
    hub: Hub
    there: Origin
    told: list[tuple[str, int]] = field(default_factory=list)

    @property
    def library(self) -> Library:
        return self.hub.writer.library

    def again(self) -> None:
        """As another program that starts now: nothing is remembered of what was fetched."""
        self.hub.sources = sources(self.root, self.told)

    async def hold(self, spec: str, **more: str) -> Held:
        return await self.hub.hold(await self.hub.sources.find(spec, **more))

    async def install(self, spec: str, *, insist: bool = False, **more: str) -> Entry:
        self.again()
        async with self.hub.alone():
            return await self.hub.install(await self.hold(spec, **more), OWNER, insist=insist)

    async def text(self, name: str) -> str:
        return (await self.library.read(await self.library.find(name))).text


def sources(root: Path, told: list[tuple[str, int]] | None = None) -> Sources:
    heard = [] if told is None else told
    return Sources(
        taps=Taps(root / "home"),
        cache=root / "cache",
        clock=SystemClock(),
        variables=VARIABLES,
        tell=lambda name, size: heard.append((name, size)),
    )


@asynccontextmanager
async def hub_at(root: Path, trust: Trust = Trust.COMMUNITY) -> AsyncIterator[Place]:
    there = Origin(root / "origin") if (root / "origin").exists() else origin(root / "origin")
    store = await open_store(root / "hermes.db")
    library = Library(
        index=SkillsIndex(root / "skills.db"),
        places=Places(home=root / "home", external=(str(root / "external"),), bundled=root / "bundled"),
        state=StateFile(root / "home"),
        clock=SystemClock(),
    )
    writer = Writer(library=library, versions=SkillVersions(store, SystemClock(), library.places.home), ids=RandomIds())
    told: list[tuple[str, int]] = []
    hub = Hub(sources=sources(root, told), writer=writer, clock=SystemClock())
    await hub.sources.taps.add(Tap(name="them", url=str(there.root), trust=trust))
    try:
        yield Place(root=root, hub=hub, there=there, told=told)
    finally:
        await library.close()
        await store.close()
