"""Tool-call hook that takes a checkpoint of files before the first call of a turn that may change them."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import field
from pathlib import Path

from hermes_agent.agent.agent import Proposed
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import HermesError
from hermes_agent.core.tool import Answer
from hermes_agent.host.late import Needs
from hermes_agent.host.paths import Home
from hermes_agent.tools.checkpoints.checkpoints import Cause, Checkpoints
from hermes_agent.tools.settings import CheckpointSettings

log = logging.getLogger(__name__)
FOLDER = "checkpoints"
PATIENCE = 2.0  # seconds
CHANGES = frozenset({Capability.FS_WRITE, Capability.EXEC})


def checkpoints_of(home: Home, settings: CheckpointSettings, clock: Clock) -> Checkpoints:
    """The checkpoint store of a home."""
    return Checkpoints(home.root / FOLDER, settings, clock)


@dataclass(slots=True, kw_only=True)
class CheckpointHook:
    """Takes checkpoints for one run. `person`: the user's home folder, which is never saved as a whole; `patience`:
    seconds before progress is shown.

    A failed checkpoint is reported once and does not block the call.
    """

    checkpoints: Checkpoints
    person: Path
    turn: int = -1
    taken: set[str] = field(default_factory=set)
    told: bool = False
    patience: float = PATIENCE
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def before_call(self, proposed: Proposed) -> None:
        """Take a checkpoint of each folder that this call is the first of its turn to change."""
        if proposed.facts.effect is Effect.READS or proposed.tool.needs.isdisjoint(CHANGES):
            return
        async with self.one_at_a_time:
            if proposed.turn != self.turn:
                self.turn, self.taken = proposed.turn, set()
            workspace, roots = self._roots(proposed)
            for root, touched in roots.items():
                new = [path for path in touched if path not in self.taken]
                whole = root == workspace and not self.person.is_relative_to(root)
                await self._take(proposed, root, new, whole=whole)

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:  # noqa: ARG002 - the Protocol's shape
        """Nothing to add."""
        return answer

    @staticmethod
    def _roots(proposed: Proposed) -> tuple[Path, dict[Path, list[str]]]:
        """The working folder; and the folders to keep, each with the files that the call is about to change: the
        working folder, and for files elsewhere the folder of each."""
        workspace = Path(os.path.realpath(proposed.context.workspace))
        if proposed.facts.paths is None:
            return workspace, {workspace: []}
        roots: dict[Path, list[str]] = {}
        for path in proposed.facts.paths:
            root = workspace if Path(path).is_relative_to(workspace) else Path(path).parent
            roots.setdefault(root, []).append(path)
        return workspace, roots

    async def _take(self, proposed: Proposed, root: Path, touched: list[str], *, whole: bool) -> None:
        if str(root) in self.taken and (whole or not touched):
            return
        words = "saving a checkpoint of the folder"
        waiting = asyncio.get_running_loop().call_later(self.patience, proposed.context.progress, words)
        told = Cause(why=proposed.facts.summary[:200], session=proposed.context.session, whole=whole)
        try:
            await self.checkpoints.save(root, told, [Path(path) for path in touched])
            self.taken |= {str(root), *touched}
        except (HermesError, OSError) as error:
            log.warning("no checkpoint of %s: %s", root, error)
            if not self.told:
                proposed.context.progress(f"no checkpoint: {error}")
                self.told = True
        finally:
            waiting.cancel()


def checkpoint_hook(needs: Needs) -> CheckpointHook:
    """Factory of the hook of one run."""
    checkpoints = checkpoints_of(needs.get(Home), needs.get(CheckpointSettings), needs.get(Clock))
    return CheckpointHook(checkpoints=checkpoints, person=Path(os.path.realpath(Path.home())))
