"""Learning in one process: what a run's end counts, who reviews, and what conversations are told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from hermes_agent.agent.mailbox import Change
from hermes_agent.agent.session import Session
from hermes_agent.app.learning.home import LearningHome
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import RunEnded
from hermes_agent.core.inbound import Standing
from hermes_agent.host.late import late
from hermes_agent.host.tasks import spawn
from hermes_agent.memory.whose import is_shared
from hermes_agent.store.sessions import Session as SessionRecord

if TYPE_CHECKING:
    from hermes_agent.app.learning.curating import Curating
    from hermes_agent.app.learning.parts import Parts
    from hermes_agent.learning.jobs import Jobs
    from hermes_agent.learning.learned import Learned
    from hermes_agent.runs.front import Hermes
    from hermes_agent.store.learning.jobs import Job

# Nothing of this is needed before a run has ended.
TRIGGERS = "hermes_agent.learning.jobs:Triggers"
PARTS = "hermes_agent.app.learning.parts:Parts"


@dataclass(kw_only=True)
class Learner(LearningHome):
    """The learning of one home. `works` says whether this process does what is in line, or leaves it to the next."""

    works: bool = False
    hermes: Hermes | None = None
    _rung: bool = field(default=False)
    _resting: asyncio.TimerHandle | None = field(default=None)
    _looking: asyncio.Task[None] | None = field(default=None)

    def closing(self, record: SessionRecord, tools: Sequence[str]) -> tuple[Counting, ...]:
        """What adds to the commit of the end of a run of this session; nothing where nothing is learned of it."""
        guest = self.standing(record.principal) is Standing.GUEST
        if guest or self.taped or self.settings.learning.mode == "off":
            return ()
        wanted = {"skills": self.settings.skills.creation_nudge_interval if "skill_manage" in tools else 0}
        if "memory" in tools and not is_shared(record.conversation):
            wanted["memory"] = self.settings.memory.nudge_interval
        intervals = {what: interval for what, interval in wanted.items() if interval}
        return (Counting(self, record.principal, intervals),) if intervals else ()

    def ring(self) -> None:
        """There is work. Called in whatever thread commits."""
        self._rung = True

    def rest(self, seconds: float | None = None) -> None:
        """Nobody talks from now on: after so long (else `curator.min_idle_hours`) it is seen whether a pass is due."""
        curator = self.settings.curator
        if not self.works or self.taped or not curator.enabled:
            return
        if self._resting is not None:
            self._resting.cancel()
        wait = curator.min_idle_hours * 3600 if seconds is None else seconds
        self._resting = asyncio.get_running_loop().call_later(wait, self._rested)

    def _rested(self) -> None:
        async def look() -> None:
            again = None
            try:
                again = await self.curating.when_idle()
            finally:
                self.rest(again)

        self._looking = spawn(look(), name="curator: see whether a pass is due")

    def afterwards(self, *_: object) -> None:
        """A run is over and was shown: whoever may, begins with what is in line."""
        self.rest()
        if self._rung and self.works:
            self._rung = False
            self.jobs.ring()

    async def run(self) -> int:
        """Do all that is in line now; how many jobs that were."""
        return await self.jobs.run()

    def leave(self) -> None:
        """Begin nothing more; `finished` returns when what is under way is done."""
        self.works = False
        if self._resting is not None:
            self._resting.cancel()

    async def finished(self) -> bool:
        """Return when nothing is under way, after `leave`; whether somebody else is to look for work now."""
        if self._looking is not None and not self._looking.done():
            await asyncio.wait((self._looking,))
        if self._working is None:
            return self._rung
        await self._working.finish()
        return True

    async def close(self) -> None:
        """Give back what is under way."""
        if self._resting is not None:
            self._resting.cancel()
        if self._looking is not None and not self._looking.done():
            self._looking.cancel()
            await asyncio.wait((self._looking,))
        if self._working is not None:
            await self._working.close()

    @cached_property
    def parts(self) -> Parts:
        """Who does the work."""
        made: Parts = late(PARTS)(self, self._report)
        return made

    @property
    def jobs(self) -> Jobs:
        """Who does the jobs of this process."""
        return self.parts.jobs

    @property
    def curating(self) -> Curating:
        """The upkeep of what was learned."""
        return self.parts.curating

    @property
    def learned(self) -> Learned:
        """What was learned, for the person."""
        return self.parts.learned

    @property
    def _working(self) -> Jobs | None:
        """Who does the jobs, where anybody did one."""
        return self.parts.__dict__.get("jobs") if "parts" in self.__dict__ else None

    async def _report(self, job: Job) -> bool:
        """One line in the conversation, with its undo; False while it is busy elsewhere."""
        record = await self.store.sessions.get(job.session)
        if self.hermes is None or record is None:
            return self.hermes is not None
        try:
            await self.hermes.notify(record, job.account.note)
        except HermesError:
            return False
        return True


class Counting:
    """A run's `Closing`, made into triggers when the run ends."""

    def __init__(self, learner: Learner, principal: str, intervals: Mapping[str, int]) -> None:
        self._learner, self._principal, self._intervals = learner, principal, intervals

    def changes(self, session: Session, ended: RunEnded) -> Sequence[Change]:
        """As `Triggers`."""
        learner = self._learner
        triggers = late(TRIGGERS)(
            store=learner.store,
            clock=learner.clock,
            ids=learner.ids,
            principal=self._principal,
            intervals=self._intervals,
            rung=learner.ring,
        )
        found: Sequence[Change] = triggers.changes(session, ended)
        return found
