"""The model for each purpose: the one that the settings name, behind it the one that answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Protocol

from hermes_agent.app.auxiliary.settings import AuxiliaryModel, AuxiliarySettings, Purpose
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.model import Delta, Model, ModelRequest, Reply, Through
from hermes_agent.providers.broker import Ledger
from hermes_agent.replay.ledger import Book, StoredLedger
from hermes_agent.replay.seam import Seam
from hermes_agent.store.sessions import Session


class Brokers(Protocol):
    """Makes a broker that asks `first`, where that is named and can be asked, then, unless `alone`, the session's own
    model (`main`, empty: the configured one) and its fallbacks. Raises `NoModel`."""

    def __call__(self, main: str, ledger: Ledger, first: str = "", *, alone: bool = False) -> Awaitable[Model]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Auxiliaries:
    """The auxiliary models of a process."""

    settings: AuxiliarySettings
    brokers: Brokers
    book: Book

    async def model(
        self, purpose: Purpose, session: Session, seam: Seam, ledger: Ledger | None = None, *, alone: bool = False
    ) -> Model:
        """Who is asked for this purpose, for this session, as it comes through the seam: with the purpose's own row in
        the ledger, within its time.

        A call that belongs to a run is written into that run's `ledger`, any other into one of its own. `alone` leaves
        out those behind it, for a caller who has others to ask. Raises `NoModel`.
        """
        chosen = self.settings.of(purpose)
        live: Callable[[Ledger], Awaitable[Model]] = partial(
            self._live, main=session.model, first=chosen.model, alone=alone
        )
        clock = seam.own(session.id, purpose).clock
        book = ledger or StoredLedger(replace(self.book, clock=clock), session.principal)
        model = await seam.model(session.id, purpose, book, live)
        return Assigned(model, purpose, chosen, self.book.clock)

    async def alone(self, purpose: Purpose, session: Session, ledger: Ledger) -> Model:
        """The model that is named for this purpose, and nobody behind it; asked in the course of another model's call,
        with which it is recorded. Raises `NoModel`."""
        chosen = self.settings.of(purpose)
        model = await self.brokers(session.model, ledger, chosen.model, alone=True)
        return Assigned(model, purpose, chosen, self.book.clock)

    async def _live(self, ledger: Ledger, *, main: str, first: str, alone: bool) -> Model:
        return await self.brokers(main, ledger, first, alone=alone)


class Assigned(Through):
    """A model at work for one purpose, within the time that the settings give it: implements `core.model.Model`."""

    def __init__(self, model: Model, purpose: Purpose, settings: AuxiliaryModel, clock: Clock) -> None:
        super().__init__(model)
        self._purpose = purpose
        self._seconds = settings.seconds
        self._clock = clock

    async def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `core.model.Model`."""
        fitted = replace(request, purpose=self._purpose, deadline=self._deadline(request.deadline))
        async with aclosing(self._model.ask(fitted)) as items:
            async for item in items:
                yield item

    def _deadline(self, asked: float | None) -> float | None:
        if self._seconds is None:
            return asked
        own = self._clock.monotonic() + self._seconds
        return own if asked is None else min(asked, own)
