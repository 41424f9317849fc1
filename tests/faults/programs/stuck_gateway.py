"""A gateway that comes to stand still, in the way that the command line names, once a file says so."""

from __future__ import annotations

import asyncio
import resource
import select
import sys
from pathlib import Path

from hermes_agent.cli.gateway.serving import serve
from hermes_agent.cli.surface import Surface
from hermes_agent.host.loops import run
from hermes_agent.host.tasks import spawn

LONG = 600.0


async def stand_still(how: str, word: Path) -> None:
    """Hold the loop, or all threads of the pool, when the file is there, which is taken away."""
    while not await asyncio.to_thread(word.exists):
        await asyncio.sleep(0.02)
    await asyncio.to_thread(word.unlink)
    if how == "loop":
        select.select([], [], [], LONG)
    if how == "pool":
        for _ in range(64):
            asyncio.get_running_loop().run_in_executor(None, select.select, [], [], [], LONG)


async def main(how: str, word: Path) -> None:
    """Serve until told to end."""
    spawn(stand_still(how, word), name="defect")
    await serve(Surface())


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    run(main(sys.argv[1], Path(sys.argv[2])))
