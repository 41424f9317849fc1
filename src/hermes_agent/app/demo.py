"""Environment of `hermes demo`: a temporary home, a sample project and a scripted model server on loopback."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from hermes_agent.core.clock import SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Entry
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.server import demo_server, unpack_project
from hermes_agent.store.database import open_store
from hermes_agent.store.work.children import Child
from hermes_agent.store.work.cron.records import Instant

REPAIRED, SHOP, CHANGED = "project", "shop", "shop_changed"
"""The projects: a broken one, one whose task has to be found out, and the same after one of its commands changed."""
PUBLISH = "Publish the price list of 2026."
REPAIR = "Find out which test fails, and fix it."
EXTEND = "Add total_by_category with a test and a line in the changelog."
SLOW_COMMAND = "inventory.stocktake"
"""The second task runs this module, which takes about a second."""
SLOW_LOG = "stocktake.log"
"""What that module writes: a line when it begins and a line when it ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The prepared environment of `hermes demo`: home, project and the address (`url`) of the scripted model server."""

    home: Home
    project: Path
    url: str


@asynccontextmanager
async def demo_stage(folder: Path, name: str = REPAIRED) -> AsyncIterator[Stage]:
    """Context manager: set up the demo with the project of that name in an empty folder, and serve the scripted
    model. Raises `OSError`."""
    root = folder / "home"
    home = Home(root=root, base=root).ensure()
    project = folder / "project"
    unpack_project(project, name)
    async with demo_server() as url:
        settings = {"model": {"default": "demo/scripted", "base_url": url}}
        home.config_file.write_text(json.dumps(settings, indent=2) + "\n", "utf-8")
        yield Stage(home=home, project=project, url=url)


def begin_anew(stage: Stage, change: str = "") -> None:
    """Remove what the task left in the project; `change` names a project to copy over it."""
    shutil.rmtree(stage.project / "dist", ignore_errors=True)
    (stage.project / "published.txt").unlink(missing_ok=True)
    if change:
        unpack_project(stage.project, change)


async def log_of(stage: Stage, session: str) -> tuple[Entry, ...]:
    """The whole log of a session. No other process may be working on it."""
    store = await open_store(str(stage.home.database), clock=SystemClock())
    try:
        return tuple(await store.history.entries(session))
    finally:
        await store.close()


async def work_of(stage: Stage) -> tuple[Sequence[Child], Sequence[Instant]]:
    """The agents, and the instants of jobs that came."""
    store = await open_store(str(stage.home.database), clock=SystemClock())
    try:
        jobs = await store.cron_jobs.all()
        return await store.children.latest(), [each for job in jobs for each in await store.cron_instants.of(job.id)]
    finally:
        await store.close()
