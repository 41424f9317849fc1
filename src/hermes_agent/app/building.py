"""Makes the agent of each run out of the parts of this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.compaction.compactor import Compactor, Shortens
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.prompt import Environment, SessionPrompt, sections_of
from hermes_agent.agent.tail import Now, Tail, TailSource
from hermes_agent.app.auxiliary.background_models import BackgroundModels
from hermes_agent.app.auxiliary.models import Auxiliaries
from hermes_agent.app.chats.people import People
from hermes_agent.app.chats.platforms import ThisRun, place_of
from hermes_agent.app.environment_prompt import environment_of
from hermes_agent.app.intake.intake import Intake
from hermes_agent.app.learning.learner import Learner
from hermes_agent.app.models.models import Answerer, Models, StoredCoolDowns
from hermes_agent.app.models.routes import route_of
from hermes_agent.app.options import Options
from hermes_agent.app.settings import Settings
from hermes_agent.app.toolkit import CLI, Toolkit
from hermes_agent.core.budget import Budget, Limits
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, NoModel
from hermes_agent.core.ids import Ids, RandomIds
from hermes_agent.core.model import Model, ToolSchema
from hermes_agent.core.section import Section
from hermes_agent.host.config import Loaded
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.host.paths import Home
from hermes_agent.host.secrets import Secrets
from hermes_agent.memory.notes import Notes
from hermes_agent.memory.whose import person_of
from hermes_agent.providers.broker import Ledger
from hermes_agent.providers.catalog import UNKNOWN_WINDOW
from hermes_agent.providers.route import Route
from hermes_agent.replay.ledger import Book, RunLedger, StoredLedger
from hermes_agent.replay.seam import Seam
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.tools.surfaces import UNATTENDED, StandingOf, rules_of

if TYPE_CHECKING:
    from hermes_agent.app.hooks.hooks import Hooks
    from hermes_agent.app.memory_provider import MemoryProvider
    from hermes_agent.app.skills import Offer
    from hermes_agent.tools.toolbox import Toolbox

UNFENCED = "hermes_agent.memory.unfenced:Unfenced"
SNAPSHOT = "hermes_agent.memory.snapshot:snapshot"
REAL_WINDOW = "hermes_agent.providers.windows:real_window"
SHORTENER = "hermes_agent.agent.compaction.shorten:Shortener"


@dataclass(kw_only=True)
class Builder:
    """Makes agents by one reading of the settings. What they open on the way is closed by `closing`."""

    home: Home
    loaded: Loaded[Settings]
    secrets: Secrets
    store: Store
    options: Options
    toolkit: Toolkit
    http: Http
    clock: Clock
    seam: Seam
    closing: AsyncExitStack
    book: Book
    standing: StandingOf
    people: People
    outside: MemoryProvider | None = None
    learner: Learner | None = None
    watched: Hooks | None = None
    catch_up: Callable[[], Awaitable[None]] | None = None
    started: dict[str, str] = field(default_factory=dict)

    async def agent(self, record: SessionRecord, journal: Journal) -> Agent:
        """The agent for a run of this session. Raises `NoModel`."""
        if self.catch_up is not None:
            await self.catch_up()
        agent = await self._agent(record, journal, self.seam)
        if self.watched is None:
            return agent
        self.watched.begun(record.id)
        finishing = self.watched.reply if self.watched.waits_for("reply:before") else None
        return replace(agent, hooks=(*agent.hooks, *self.watched.around_calls()), finishing=finishing)

    async def apart(self, record: SessionRecord, journal: Journal) -> Agent:
        """The agent for a command on this session, outside of any run: never recorded, never from a recording."""
        return await self._agent(record, journal, Seam(self.clock, RandomIds()))

    async def begins(self, record: SessionRecord) -> tuple[tuple[Section, ...], tuple[ToolSchema, ...]]:
        """The sections and tools of the prompt that this session would begin with now, also where there is no model."""
        if self.catch_up is not None:
            await self.catch_up()
        try:
            window = (await self._broker(record.model, StoredLedger(self.book, record.principal))).window
        except NoModel:
            window = 0
        toolbox, offer = self._offered(record, window)
        return sections_of(await self._surroundings(record, offer, window), toolbox.offered), toolbox.offered

    def _offered(self, record: SessionRecord, window: int) -> tuple[Toolbox, Offer]:
        surface = rules_of(record.surface, self.standing(record.principal))
        narrowed = self.people.toolsets(record.conversation)
        toolbox = self.toolkit.toolbox(surface, window, narrowed)
        return toolbox, self.toolkit.skills.meet(record, self.toolkit.toolsets(surface, narrowed), toolbox.names)

    async def _surroundings(self, record: SessionRecord, offer: Offer, window: int) -> Environment:
        skills, eligible = await offer.index()
        look = partial(
            environment_of,
            home=self.home.root,
            workspace=Path(record.workspace),
            place=place_of(record.conversation, self.options.platform),
            now=self.clock.now(),
            notes=self._notes(record),
            window=window,
        )
        # What lies in the home is as near as the database: a thread would cost several times what it takes.
        is_near = Path(record.workspace).is_relative_to(self.home.root)
        around = look() if is_near else await asyncio.to_thread(look)
        wrong = (*around.warnings, *self.toolkit.wrong(), *await offer.broken())
        return replace(around, skills=skills, warnings=wrong, eligible=eligible)

    async def _agent(self, record: SessionRecord, journal: Journal, seam: Seam) -> Agent:
        settings, own = self.loaded.value, seam.own(record.id)
        attended = self.options.attended and record.surface not in UNATTENDED
        surface = rules_of(record.surface, self.standing(record.principal))
        await seam.start_run(record, self.store)
        ledger = RunLedger(replace(self.book, clock=own.clock), journal, record)
        try:
            model = await seam.model(record.id, "", ledger, partial(self._answering, record))
        except HermesError as error:
            seam.refused(record.id, error)
            raise
        toolbox, offer = self._offered(record, model.window)
        look_around = partial(self._surroundings, record, offer, model.window)
        limits = self._limits(own.clock)
        recall = self.outside.recall(record) if self.outside else None
        run = ThisRun(attended=attended, reading=self.options.reading)
        sources: list[TailSource] = [
            Now(own.clock),
            run,
            *self.toolkit.tail,
            *offer.tail,
            *([recall] if recall else []),
        ]
        tail = Tail(seam.tail(record.id, sources), own.ids)

        beside = self.background.of_run(record, ledger, seam, journal.session, limits.deadline)

        def shortener() -> Shortens:
            made: Shortens = late(SHORTENER)(
                seconds=settings.compaction.seconds,
                writers=lambda: beside.writers(model),
                tail=tail,
                deadline=limits.deadline,
                ids=own.ids,
                redact=self.secrets.redact,
                keep=self.intake.kept,
                **({"leaving": recall.leaving} if recall else {}),
            )
            return made

        agent = Agent(
            model=late(UNFENCED)(model, recall.answered) if recall else model,
            tools=toolbox,
            prompt=SessionPrompt(
                self.store, seam.offered(record.id, toolbox.offered), lambda: seam.environment(record.id, look_around)
            ),
            budget=Budget(limits=limits),
            clock=own.clock,
            ids=own.ids,
            hooks=self.toolkit.hooks(
                self.options.capabilities,
                attended=attended,
                session=record.id,
                surface=surface,
                judge=beside.judge,
            ),
            effort=settings.model.reasoning_effort,
            max_parallel=settings.agent.max_parallel,
            attended=attended,
            redact=self.secrets.redact,
            tail=tail,
            compactor=Compactor(settings=settings.compaction, shortener=shortener),
            closing=self.learner.closing(record, toolbox.names) if self.learner else (),
            location=self.toolkit.location,
        )
        return seam.outfit(record.id, agent)

    @cached_property
    def intake(self) -> Intake:
        """Keeps what comes in and is large."""
        return Intake(self.home.cache / "input", self._window, strict=self.options.strict_input)

    async def _window(self, model: str) -> int:
        """Tokens of the window of that model (empty: the one that answers here); of a usual one where there is none."""
        try:
            route = await self._reachable(route_of(self.loaded, self.secrets, model or self.options.model))
        except NoModel:
            return UNKNOWN_WINDOW
        if not route.vendor.window_probe or self.loaded.value.model.window is not None:
            return route.facts.window
        real: int | None = await late(REAL_WINDOW)(self.http, route)
        return real or route.facts.window

    def learns(self, notes: Notes, ids: Ids) -> Learner:
        """What this process learns, and with whose hands."""
        return Learner(
            store=self.store,
            clock=self.clock,
            ids=ids,
            settings=self.loaded.value,
            skills=self.toolkit.skills,
            notes=notes,
            standing=self.standing,
            auxiliary=self.background.model,
            book=self.book,
            works=self.options.reviews,
            taped=self.options.tape is not None,
            tools=lambda: self.toolkit.toolbox(CLI).names,
        )

    @cached_property
    def background(self) -> BackgroundModels:
        """What auxiliary models do in this process."""
        auxiliaries = Auxiliaries(settings=self.loaded.value.auxiliary, brokers=self._broker, book=self.book)
        return BackgroundModels(
            auxiliaries,
            seam=self.seam,
            store=self.store,
            cache=self.home.cache,
            redact=self.secrets.redact,
            titles=self.options.titles,
        )

    async def _answering(self, record: SessionRecord, ledger: Ledger) -> Model:
        """The model that answers in this session. Raises `NoModel`."""
        model = await self._broker(record.model, ledger)
        return self.background.with_eyes(model, record, ledger, sees=model.sees)

    async def _broker(self, main: str, ledger: Ledger, first: str = "", *, alone: bool = False) -> Answerer:
        """The model that is named, else this process's, else the configured one; `first` as in `Brokers`. Raises
        `NoModel`."""
        return await self.models.model(main or self.options.model, ledger, first, alone=alone)

    @cached_property
    def models(self) -> Models:
        """The models by these settings, whose chains are made once."""
        return Models(
            loaded=self.loaded,
            secrets=self.secrets,
            cool_downs=StoredCoolDowns(self.store, self.clock),
            reachable=self._reachable,
            http=self.http,
            clock=self.clock,
        )

    def _notes(self, record: SessionRecord) -> Callable[[], tuple[str, tuple[str, ...]]]:
        person = person_of(record.principal, self.toolkit.is_owner, record.conversation)
        return lambda: late(SNAPSHOT)(self.home, self.loaded.value.memory, person)

    async def _reachable(self, route: Route) -> Route:
        """The route with its address; a vendor that lives in this process is started when it is first asked."""
        if route.base_url:
            return route
        vendor = route.vendor
        if vendor.name not in self.started:
            self.started[vendor.name] = await self.closing.enter_async_context(late(vendor.server)())
        return replace(route, base_url=self.started[vendor.name])

    def _limits(self, clock: Clock) -> Limits:
        agent = self.loaded.value.agent
        deadline = None if agent.max_seconds is None else clock.monotonic() + agent.max_seconds
        return Limits(turns=agent.max_turns, deadline=deadline)
