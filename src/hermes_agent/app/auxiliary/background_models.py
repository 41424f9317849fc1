"""What auxiliary models do beside the one that answers: for a whole process, and for one run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.agent.session import Session
from hermes_agent.app.auxiliary.models import Auxiliaries
from hermes_agent.app.auxiliary.settings import Purpose
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import NoModel
from hermes_agent.core.events import RunEnded
from hermes_agent.core.model import Model
from hermes_agent.host.late import late
from hermes_agent.providers.broker import Ledger
from hermes_agent.replay.ledger import RunLedger
from hermes_agent.replay.seam import Seam
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session as SessionRecord

if TYPE_CHECKING:
    from hermes_agent.app.auxiliary.title import Titles
    from hermes_agent.app.auxiliary.vision import Described

TITLES = "hermes_agent.app.auxiliary.title:Titles"
ASSISTED = "hermes_agent.app.auxiliary.vision:Assisted"
DESCRIBED = "hermes_agent.app.auxiliary.vision:Described"
JUDGE = "hermes_agent.app.auxiliary.judge:judged"

log = logging.getLogger(__name__)


class BackgroundModels:
    """The auxiliary work of a process; `titles` says whether its sessions get titles. `redact` takes secrets out;
    `cache` is the home's folder of what can be found out again."""

    def __init__(
        self,
        auxiliaries: Auxiliaries,
        *,
        seam: Seam,
        store: Store,
        cache: Path,
        redact: Callable[[str], str],
        titles: bool,
    ) -> None:
        self._auxiliaries = auxiliaries
        self._seam = seam
        self._store = store
        self._redact = redact
        self._cache = cache
        self._wanted = titles and auxiliaries.settings.title.enabled
        self._titles: Titles | None = None
        self._described: Described | None = None

    async def model(
        self, purpose: Purpose, record: SessionRecord, ledger: Ledger | None = None, *, alone: bool = False
    ) -> Model:
        """Who works for this session for a purpose; see `Auxiliaries.model`."""
        return await self._auxiliaries.model(purpose, record, self._seam, ledger, alone=alone)

    def of_run(
        self, record: SessionRecord, ledger: RunLedger, seam: Seam, view: Session, deadline: float | None
    ) -> OfRun:
        """The auxiliary work of one run."""
        return OfRun(
            auxiliaries=self._auxiliaries, record=record, ledger=ledger, seam=seam, view=view, deadline=deadline
        )

    def with_eyes(self, model: Model, record: SessionRecord, ledger: Ledger, *, sees: bool) -> Model:
        """The model; one that sees no pictures with another that describes them to it, where one is named for that."""
        if sees or not self._auxiliaries.settings.vision.model:
            return model
        if self._described is None:
            self._described = late(DESCRIBED)(self._cache / "pictures")
        assisted: Model = late(ASSISTED)(
            model, lambda: self._auxiliaries.alone(Purpose.VISION, record, ledger), self._described
        )
        return assisted

    def afterwards(self, record: SessionRecord, view: Session, ended: RunEnded) -> None:
        """A run has ended: a session without a title may get one."""
        asked = self._seam.own(record.id, Purpose.TITLE).asked
        if record.title or not (self._wanted if asked is None else asked):
            return
        if self._titles is None:
            self._titles = late(TITLES)(store=self._store, model=self.model, own=self._seam.own, redact=self._redact)
        self._titles.answered(record, view, ended)

    async def settled(self) -> None:
        """Return when nothing goes on beside the runs."""
        if self._titles is not None:
            await self._titles.settled()

    async def close(self) -> None:
        """Give up what goes on beside the runs."""
        if self._titles is not None:
            await self._titles.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class OfRun:
    """The auxiliary work of one run, in its ledger and within its `deadline`."""

    auxiliaries: Auxiliaries
    record: SessionRecord
    ledger: RunLedger
    seam: Seam
    view: Session
    deadline: float | None

    async def model(self, purpose: Purpose, *, alone: bool = False) -> Model:
        """Who works for a purpose. Raises `NoModel`."""
        book = self.ledger.by(self.seam.own(self.record.id, purpose).clock)
        return await self.auxiliaries.model(purpose, self.record, self.seam, book, alone=alone)

    async def judge(self, question: str) -> str:
        """What the judge of commands says. Raises `HermesError`."""
        words: str = await late(JUDGE)(
            await self.model(Purpose.JUDGE),
            question,
            view=self.view,
            call_id=self.seam.own(self.record.id, Purpose.JUDGE).ids.short(),
            deadline=self.deadline,
        )
        return words

    async def writers(self, main: Model) -> Sequence[Model]:
        """Who writes summaries: the model that is named for that, then the one that answers."""
        if not self.has(Purpose.COMPRESSION):
            return (main,)
        try:
            return (await self.model(Purpose.COMPRESSION, alone=True), main)
        except NoModel as reason:
            log.warning("summaries are written by %s: %s", main.name, reason)
            return (main,)

    def has(self, purpose: Purpose) -> bool:
        """Whether a purpose has a model of its own."""
        asked = self.seam.own(self.record.id, purpose).asked
        return bool(self.auxiliaries.settings.of(purpose).model) if asked is None else asked
