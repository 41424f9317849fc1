"""Learning service of a process: queues reviews at run ends, starts queued learning jobs, and times curator passes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from hermes_agent.agent.mailbox import Change
from hermes_agent.agent.session import Session
from hermes_agent.app.auxiliary.background_models import Auxiliary
from hermes_agent.app.process import Options
from hermes_agent.app.settings import Settings
from hermes_agent.core.chat import Conversation, Standing, Standings
from hermes_agent.core.clock import Clock, RandomIds
from hermes_agent.core.events import RunEnded
from hermes_agent.core.messages import ToolResult
from hermes_agent.host.late import Needs, late
from hermes_agent.host.tasks import spawn
from hermes_agent.memory.settings import is_shared
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session as SessionRecord

if TYPE_CHECKING:
    from hermes_agent.app.learning.work import LearningWork
    from hermes_agent.learning.jobs import Jobs

PUT_ASIDE = '"kind": "put_aside"'

# Nothing of this is needed before a run has ended.
TRIGGERS = "hermes_agent.learning.jobs:Triggers"
WORK = "hermes_agent.app.learning.work:LearningWork"


class Learner:
    """Learning service of one home in a process. `works`: whether this process runs queued jobs or leaves them to
    another; `reviewing`: its jobs, once it had any. Runs of a recorded or replayed process trigger no learning."""

    def __init__(self, needs: Needs, auxiliary: Auxiliary, tools: Callable[[], Collection[str]]) -> None:
        self._needs, self._auxiliary, self._tools = needs, auxiliary, tools
        self._settings, options = needs.get(Settings), needs.get(Options)
        self.works, self._taped = options.reviews, options.tape is not None
        self._rung = False
        self.reviewing: Jobs | None = None
        self._resting: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None

    def closing(self, record: SessionRecord, tools: Sequence[str]) -> tuple[Counting, ...]:
        """The callbacks that add review triggers to the commit of a run's end; empty if nothing is learned from this
        session."""
        settings = self._settings
        is_guest = self._needs.get(Standings).of(record.principal) is Standing.GUEST
        if is_guest or self._taped or settings.learning.mode == "off":
            return ()
        wanted = {"skills": settings.skills.creation_nudge_interval if "skill_manage" in tools else 0}
        if "memory" in tools and not is_shared(record.conversation):
            wanted["memory"] = settings.memory.nudge_interval
        intervals = {what: interval for what, interval in wanted.items() if interval}
        return (Counting(self._needs, record.principal, intervals, self.ring),) if intervals else ()

    def ring(self) -> None:
        """Signal that a job was queued. Thread-safe."""
        self._rung = True

    def rest(self, seconds: float | None = None) -> None:
        """Start the idle timer (seconds, default `curator.min_idle_hours`) after which a curator pass may be due."""
        curator = self._settings.curator
        if not self.works or self._taped or not curator.enabled:
            return
        if self._resting is not None:
            self._resting.cancel()
        wait = curator.min_idle_hours * 3600 if seconds is None else seconds
        self._resting = asyncio.get_running_loop().call_later(wait, self._rested)

    def _rested(self) -> None:
        async def look() -> None:
            again = None
            try:
                again = await self.work.curating.when_idle()
            finally:
                self.rest(again)

        self._looking = spawn(look(), name="curator: see whether a pass is due")

    def afterwards(self, record: SessionRecord, view: Session, ended: RunEnded) -> None:  # noqa: ARG002 - a listener
        """Run-end listener: start queued jobs and the idle timer, and ask about what waits since this run."""
        self.rest()
        results = (part for message in view.messages for part in message.parts if isinstance(part, ToolResult))
        chats = Conversation.parse(record.conversation).chat_kind == "dm"
        if not self._taped and (chats or any(PUT_ASIDE in result.text for result in results)):
            self._asking = spawn(self.work.ask(record, view.began), name="ask what to keep")
        if self._rung and self.works:
            self._rung, self.reviewing = False, self.jobs
            self.jobs.ring()

    async def run(self) -> int:
        """Run all queued jobs now. Returns their number."""
        return await self.jobs.run()

    def leave(self) -> None:
        """Start no more jobs; `finished` waits for the running ones."""
        self.works = False
        if self._resting is not None:
            self._resting.cancel()

    async def finished(self) -> bool:
        """Wait for running jobs, after `leave`. Returns whether queued jobs are left for the next snapshot."""
        if self._looking is not None and not self._looking.done():
            await asyncio.wait((self._looking,))
        if "work" not in self.__dict__:
            return self._rung
        await self.jobs.finish()
        return True

    async def close(self) -> None:
        """Cancel running jobs and return them to the queue."""
        if self._resting is not None:
            self._resting.cancel()
        if self._looking is not None and not self._looking.done():
            self._looking.cancel()
            await asyncio.wait((self._looking,))
        if self._asking is not None:
            await asyncio.wait((self._asking,))
        if "work" in self.__dict__:
            await self.jobs.close()

    @cached_property
    def work(self) -> LearningWork:
        """What runs the jobs, and what they write with; made when first needed."""
        made: LearningWork = late(WORK)(self._needs, self._auxiliary, self._tools)
        return made

    @property
    def jobs(self) -> Jobs:
        """The job runner of this process."""
        return self.work.jobs


class Counting:
    """Callback at a run's end (`Closing`) that adds review triggers to the commit of that end."""

    def __init__(self, needs: Needs, principal: str, intervals: Mapping[str, int], rung: Callable[[], None]) -> None:
        self._needs, self._principal, self._intervals, self._rung = needs, principal, intervals, rung

    def changes(self, session: Session, ended: RunEnded) -> Sequence[Change]:
        """See `Triggers.changes`."""
        triggers = late(TRIGGERS)(
            store=self._needs.get(Store),
            clock=self._needs.get(Clock),
            ids=RandomIds(),
            principal=self._principal,
            intervals=self._intervals,
            rung=self._rung,
        )
        found: Sequence[Change] = triggers.changes(session, ended)
        return found
