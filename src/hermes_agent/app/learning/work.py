"""The work of learning: reviews and passes in line, what waits for a person, one undo for everything."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from hermes_agent.app.auxiliary.background_models import Auxiliary
from hermes_agent.app.auxiliary.settings import Purpose
from hermes_agent.app.learning.curating import Curating, within
from hermes_agent.app.learning.home_writers import HomeWriters
from hermes_agent.app.learning.probes import Probes
from hermes_agent.app.settings import Settings
from hermes_agent.app.skills import Skills
from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import HermesError
from hermes_agent.core.ids import RandomIds
from hermes_agent.core.inbound import Standings
from hermes_agent.core.model import Model
from hermes_agent.core.spending import Limit, Scope, nanos
from hermes_agent.host.late import Needs
from hermes_agent.learning.jobs import Does, Jobs
from hermes_agent.learning.learned import Learned
from hermes_agent.learning.probing import Probing
from hermes_agent.learning.proposing import Proposing
from hermes_agent.learning.retracting import Retracting
from hermes_agent.learning.reviewing import Reviewer
from hermes_agent.learning.undoing import Undoing
from hermes_agent.memory.notes import Notes
from hermes_agent.replay.ledger import Book, StoredLedger
from hermes_agent.runs.front import Hermes
from hermes_agent.sandbox.place import Place
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Claim, Job, JobKind
from hermes_agent.store.sessions import Session as SessionRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


class LearningWork:
    """What does the learning of one home. `auxiliary` gives models, `tools` names the tools that there are."""

    def __init__(self, needs: Needs, auxiliary: Auxiliary, tools: Callable[[], Collection[str]]) -> None:
        self._needs, self._auxiliary, self._tools = needs, auxiliary, tools
        self._store, self._clock, self._ids = needs.get(Store), needs.get(Clock), RandomIds()
        self._settings, self._skills = needs.get(Settings), needs.get(Skills)
        self.proposing = Proposing(
            store=self._store, clock=self._clock, hands_of=self.writers, days=self._settings.learning.waits_days
        )
        self.undoing = Undoing(
            store=self._store, writer=lambda: self._skills.writer(self._store), notes=needs.later(Notes)
        )
        self.learned = Learned(store=self._store, clock=self._clock, undoing=self.undoing, proposing=self.proposing)
        self.curating = Curating(needs, auxiliary, self.proposing, lambda: self.jobs.ring())

    @cached_property
    def jobs(self) -> Jobs:
        """What is in line, and who does it in this process."""
        reviewer = Reviewer(
            store=self._store,
            clock=self._clock,
            ids=self._ids,
            settings=self._settings.learning,
            model_for=self._model,
            hands_of=self.writers,
            proposing=self.proposing,
            effort=self._settings.model.reasoning_effort,
        )
        retracting = Retracting(store=self._store, undoing=self.undoing, proposing=self.proposing)
        does: dict[JobKind, Does] = {
            JobKind.REVIEW: reviewer,
            JobKind.RETRACT: retracting,
            JobKind.CURATOR: self._curate,
        }
        if self._skills.place is not None:
            does[JobKind.PROBE] = self._probing(self._skills.place)
        return Jobs(self._store, does, self._report)

    def _probing(self, place: Place) -> Probing:
        return Probing(
            store=self._store,
            clock=self._clock,
            settings=self._settings.learning,
            hands_of=self.writers,
            proposing=self.proposing,
            passes=Probes(place=place, tools=self._tools, ids=self._ids),
        )

    async def _curate(self, claim: Claim) -> Account:
        return await self.curating.curator(claim)

    def writers(self, record: SessionRecord) -> HomeWriters:
        """The tools of a review of this conversation."""
        is_owner = self._needs.get(Standings).is_owner
        return HomeWriters(record=record, skills=self._skills, notes=self._needs.get(Notes), is_owner_key=is_owner)

    async def _model(self, record: SessionRecord) -> Model:
        """Who reviews: `auxiliary.review`, else the conversation's own model, within the limits of one review."""
        learning, book = self._settings.learning, self._needs.get(Book)
        money = None if learning.max_money is None else nanos(learning.max_money)
        own = Limit(scope=Scope.RUN, money=money, tokens=learning.max_tokens)
        ledger = StoredLedger(replace(book, rules=within(book.rules, own)), record.principal)
        return await self._auxiliary(Purpose.REVIEW, record, ledger)

    async def _report(self, job: Job) -> bool:
        """One line in the conversation, with its undo; False while it is busy elsewhere."""
        record = await self._store.sessions.get(job.session)
        if record is None:
            return True
        try:
            await self._needs.get(Hermes).notify(record, job.account.note)
        except HermesError:
            return False
        return True
