"""Running the checks of what was learned: in a jail, as the commands inside skills, or against the tools that there
are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.ids import Ids
from hermes_agent.learning.typed import TOOL, objection
from hermes_agent.sandbox.place import Command, Place, PlaceFailed

log = logging.getLogger(__name__)

SECONDS = 10.0
"""What a check may take; one that takes longer does not pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """See `Checks`. `place` is a jailed one, `tools` are the names of the tools that there are."""

    place: Place
    tools: Callable[[], Collection[str]]
    ids: Ids
    seconds: float = SECONDS

    async def __call__(self, check: str, workspace: str) -> bool:
        """Whether it passes now. What cannot be run does not pass, nor what does more than look: not every line of an
        agent went through the gate."""
        if named := TOOL.fullmatch(check):
            return named[1] in self.tools()
        if not workspace or not await asyncio.to_thread(Path(workspace).is_dir):
            return False
        if against := await asyncio.to_thread(objection, check):
            log.info("a check is not run: %s", against)
            return False
        try:
            return await self._run(Command(text=check, folder=workspace, limit=self.seconds + 1))
        except PlaceFailed as error:
            log.info("a check was not run: %s", error)
            return False

    async def _run(self, command: Command) -> bool:
        running = await self.place.start(f"probes/{self.ids.short()}", command)
        ended = None
        try:
            async with asyncio.timeout(self.seconds):
                ended = await running.wait()
        except TimeoutError:
            return False
        finally:
            if ended is None:
                await running.kill()
        return ended.code == 0
