"""Settings snapshot: everything built from one reading of the settings, open until its last run ends; its agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.compaction.compactor import Compactor, Shortens
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.prompt import Environment, Now, SessionPrompt, Tail, TailSource, sections_of
from hermes_agent.app.auxiliary.background_models import BackgroundModels, OfRun
from hermes_agent.app.chats.people import People
from hermes_agent.app.chats.platforms import ThisRun, place_of
from hermes_agent.app.environment_prompt import environment_of, found_notes
from hermes_agent.app.folder_trust import TrustedFolders
from hermes_agent.app.intake import Intake
from hermes_agent.app.learning.learner import Learner
from hermes_agent.app.models import Answerer, Models, StoredCoolDowns, route_of, started
from hermes_agent.app.process import Options, Process
from hermes_agent.app.settings import Settings
from hermes_agent.app.skills import Offer, Reserved
from hermes_agent.app.tool_sources import MEMORY, EditorServers
from hermes_agent.app.toolkit import CLI, Toolkit, needs_of
from hermes_agent.app.work import (
    ALARMS,
    close_work,
    granted_by,
    limits_by,
    mandate_of,
    toolsets_by,
    work_ended,
    work_part,
)
from hermes_agent.core.chat import Standings, own_name
from hermes_agent.core.clock import Clock, RandomIds
from hermes_agent.core.errors import HermesError, NoModel
from hermes_agent.core.mandate import Mandate
from hermes_agent.core.messages import Model, Origin, ToolSchema
from hermes_agent.core.section import Section
from hermes_agent.core.spending import Budget
from hermes_agent.host.config import Loaded
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.host.paths import environment
from hermes_agent.host.secrets import Secrets
from hermes_agent.memory.notes import SOUL, Notes, snapshot as notes_of
from hermes_agent.memory.settings import label_of, person_of
from hermes_agent.providers.broker import Ledger
from hermes_agent.providers.catalog import UNKNOWN_WINDOW
from hermes_agent.providers.local import real_window
from hermes_agent.providers.redacted import Redacted
from hermes_agent.providers.route import Route
from hermes_agent.replay.seam import Book, RunLedger, Seam, StoredLedger
from hermes_agent.runs.front import Hermes
from hermes_agent.runs.one_run import Afterwards
from hermes_agent.sandbox.place import Place, PlaceFailed
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.tools.files.buffers import Buffers
from hermes_agent.tools.permission.unasked import Unasked
from hermes_agent.tools.surfaces import OPEN_WALLS, UNATTENDED, rules_of
from hermes_agent.tools.todo import Todos
from hermes_agent.tools.toolbox import PassingTools, Toolbox

if TYPE_CHECKING:
    from hermes_agent.app.hooks import Hooks
    from hermes_agent.app.memory_provider import MemoryProvider
    from hermes_agent.runs.alarm import Source

HOOKS = "hermes_agent.app.hooks:hooks_of"
EFFORT, APPROVE, TOOLSETS = "effort", "approvals", "toolsets"
"""What a session may choose for itself: its facts by these names."""


class SettingsSnapshot:
    """Everything built from one reading of the settings (tools, skills, models, hooks, learning); `closing` closes it.
    `users` counts the active runs and commands that use it, `afterwards` are run-end listeners. Raises `HermesError` if
    the settings name something that does not exist."""

    def __init__(self, process: Process, loaded: Loaded[Settings]) -> None:
        self.process, self.loaded, self.settings = process, loaded, loaded.value
        self.users, self.free, self.closing = 0, asyncio.Event(), AsyncExitStack()
        self.free.set()
        self.book = replace(process.book, rules=process.limits or self.settings.rules)
        self.notes = Notes(
            home=process.home,
            store=process.store,
            clock=process.machine,
            ids=RandomIds(),
            settings=self.settings.memory,
        )
        self.needs = needs_of(
            process.home,
            self.settings,
            {
                Book: self.book,
                Buffers: process.buffers,
                Clock: process.machine,
                EditorServers: process.editor_servers,
                Hermes: process.hermes,
                Http: process.http,
                Notes: self.notes,
                Options: process.options,
                People: process.people,
                Reserved: process.reserved,
                Seam: process.seam,
                Secrets: process.secrets,
                Standings: process.standings,
                Store: process.store,
                TrustedFolders: process.folders,
                Unasked: process.unasked,
            },
        )
        self.toolkit = Toolkit(self.needs)
        self.skills = self.toolkit.skills
        self.closing.push_async_callback(self.toolkit.close)
        self.memory: MemoryProvider | None = None
        if self.settings.memory.provider != "none":
            self.memory = self.needs.made(MEMORY)
            self.closing.push_async_callback(self.memory.close)
        self.hooks: Hooks | None = None
        if self.settings.hooks and process.options.tape is None:  # What a recording holds is not changed again.
            self.hooks = late(HOOKS)(self.settings.hooks, process.home.root, environment())
            self.closing.push_async_callback(self.hooks.close)
        self.background = BackgroundModels(self.needs, self.broker)
        self.needs.put(BackgroundModels, self.background)
        self.learner = Learner(self.needs, self.background.model, lambda: self.toolkit.toolbox(CLI).names)
        self.learner.rest()
        self.afterwards: tuple[Afterwards, ...] = (self.background.afterwards, self.learner.afterwards)
        self.afterwards += (partial(work_ended, self.needs), *((self.hooks.over,) if self.hooks else ()))
        self._started: dict[str, str] = {}

    @asynccontextmanager
    async def held(self) -> AsyncIterator[SettingsSnapshot]:
        """Context manager: keep the snapshot open."""
        self.users += 1
        self.free.clear()
        try:
            yield self
        finally:
            self.users -= 1
            if not self.users:
                self.free.set()

    def has_wall(self) -> bool:
        """Whether commands run where the owner's files are closed to them, or none runs at all. Blocks, the first
        time."""
        try:
            return self.needs.get(Place).wall() not in OPEN_WALLS
        except PlaceFailed:
            return True

    async def catch_up(self) -> None:
        """Load notes and skills that other homes of the household changed, before a run."""
        if self.process.store.versions.machine:
            await self.notes.catch_up()
            await self.skills.catch_up()

    async def quiet(self) -> None:
        """Cancel background tasks, or return their jobs to the queue."""
        await self.learner.close()
        await close_work(self.needs)
        await self.background.close()

    @cached_property
    def intake(self) -> Intake:
        """Large input handling."""
        process = self.process
        return Intake(process.home.cache / "input", self._window, strict=process.options.strict_input)

    async def _window(self, model: str) -> int:
        """Window of that model in tokens (empty: the process's); a usual value if there is no model."""
        process = self.process
        try:
            route = await self._reachable(route_of(self.loaded, process.secrets, model or process.options.model))
        except NoModel:
            return UNKNOWN_WINDOW
        if not route.vendor.window_probe or self.settings.model.window is not None:
            return route.facts.window
        return await real_window(process.http, route) or route.facts.window

    async def broker(self, main: str, ledger: Ledger, first: str = "", *, alone: bool = False) -> Answerer:
        """The named model, else this process's, else the configured one; `first` as in `Brokers`. Raises `NoModel`."""
        return await self.models.model(main or self.process.options.model, ledger, first, alone=alone)

    @cached_property
    def alarms(self) -> Sequence[Source]:
        """What is due at times, for a process that serves."""
        sources: list[Source] = [source for where in ALARMS if (source := self.needs.made(where)) is not None]
        for source in sources:
            self.closing.push_async_callback(source.close)
        return sources

    @cached_property
    def models(self) -> Models:
        """The models of these settings, with cached chains."""
        process = self.process
        return Models(
            loaded=self.loaded,
            secrets=process.secrets,
            cool_downs=StoredCoolDowns(process.store, process.machine),
            reachable=self._reachable,
            http=process.http,
            clock=process.machine,
        )

    async def _reachable(self, route: Route) -> Route:
        """The route with its address; an in-process vendor is started when first asked."""
        if route.base_url:
            return route
        vendor = route.vendor
        if vendor.name not in self._started:
            self._started[vendor.name] = await started(vendor, self.closing)
        return replace(route, base_url=self._started[vendor.name])


WALLED = frozenset({"shell", "code"})
"""Toolsets that only the owner has where no wall stands."""
UNFENCED = "hermes_agent.memory.recall:Unfenced"
SHORTENER = "hermes_agent.agent.compaction.shorten:Shortener"


async def prompt_of(
    snapshot: SettingsSnapshot, record: SessionRecord
) -> tuple[tuple[Section, ...], tuple[ToolSchema, ...]]:
    """The prompt sections and tools with which this session would start now; works without a model."""
    await snapshot.catch_up()
    try:
        window = (await snapshot.broker(record.model, StoredLedger(snapshot.book, record.principal))).window
    except NoModel:
        window = 0
    toolbox, offer = await _offered(snapshot, record, window, None, {})
    return sections_of(await _surroundings(snapshot, record, offer, window, None), toolbox.offered), toolbox.offered


async def agent_of(snapshot: SettingsSnapshot, record: SessionRecord, journal: Journal) -> Agent:
    """The agent for a run of this session. Raises `NoModel`."""
    await snapshot.catch_up()
    agent = await agent_at(snapshot, record, journal, snapshot.process.seam)
    if (hooks := snapshot.hooks) is None:
        return agent
    hooks.begun(record)
    finishing = hooks.reply if hooks.waits_for("reply:before") else None
    return replace(agent, hooks=(*agent.hooks, *hooks.around_calls()), finishing=finishing)


async def agent_at(snapshot: SettingsSnapshot, record: SessionRecord, journal: Journal, seam: Seam) -> Agent:
    """Build the agent of this session behind a replay seam. Raises `NoModel`."""
    process, settings, own = snapshot.process, snapshot.settings, seam.own(record.id)
    attended = process.options.attended and record.surface not in UNATTENDED
    await seam.start_run(record, process.store)
    mandate = await mandate_of(process.store, record)
    work = await work_part(snapshot.needs, record, mandate)
    ledger = RunLedger(
        replace(snapshot.book.within(*work.limits), clock=own.clock), journal, replace(record, job=work.job)
    )
    try:
        model = await seam.model(record.id, "", ledger, partial(_answering, snapshot, record))
    except HermesError as error:
        seam.refused(record.id, error)
        raise
    model = Redacted(model, process.secrets.redact)
    chosen = await process.store.facts.of(f"session:{record.id}")
    toolbox, offer = await _offered(snapshot, record, model.window, mandate, chosen)
    look_around = partial(_surroundings, snapshot, record, offer, model.window, mandate)
    limits = limits_by(mandate, settings.agent, own.clock)
    recall = snapshot.memory.recall(record) if snapshot.memory and (not mandate or mandate.remembers) else None
    sources: list[TailSource] = [
        Now(own.clock),
        ThisRun(attended=attended, reading=process.options.reading),
        snapshot.needs.get(Todos),
        PassingTools(toolbox, snapshot.toolkit.news),
        *offer.tail,
        *([recall] if recall else []),
        *work.tails,
    ]
    tail = Tail(seam.tail(record.id, sources), own.ids)
    beside = OfRun(
        models=snapshot.background,
        record=record,
        ledger=ledger,
        seam=seam,
        view=journal.session,
        deadline=limits.deadline,
    )

    def shortener() -> Shortens:
        made: Shortens = late(SHORTENER)(
            seconds=settings.compaction.seconds,
            writers=lambda: beside.writers(model),
            tail=tail,
            deadline=limits.deadline,
            ids=own.ids,
            redact=process.secrets.redact,
            keep=partial(snapshot.intake.kept, own_name(record.workspace)),
            **({"leaving": recall.leaving} if recall else {}),
        )
        return made

    agent = Agent(
        model=late(UNFENCED)(model, recall.answered) if recall else model,
        tools=toolbox,
        prompt=SessionPrompt(
            process.store, seam.offered(record.id, toolbox.offered), lambda: seam.environment(record.id, look_around)
        ),
        budget=Budget(limits=limits),
        clock=own.clock,
        ids=own.ids,
        hooks=snapshot.toolkit.hooks(
            granted_by(mandate, process.options.capabilities),
            beside.judge,
            attended=attended,
            session=record.id,
            surface=_surface(snapshot, record),
            mode=chosen.get(APPROVE, ""),
        ),
        effort=(mandate.effort if mandate else "") or chosen.get(EFFORT, "") or settings.model.reasoning_effort,
        max_parallel=settings.agent.max_parallel,
        attended=attended,
        redact=process.secrets.redact,
        tail=tail,
        compactor=Compactor(settings=settings.compaction, shortener=shortener),
        closing=(
            *(snapshot.learner.closing(record, toolbox.names) if not mandate or mandate.learns else ()),
            *work.closings,
        ),
        location=snapshot.needs.get(Place).location,
        labels=await asyncio.to_thread(process.folders.labels, record.workspace, record.id),
        own=label_of(process.standings.of(record.principal), record.conversation),
    )
    return seam.outfit(record.id, agent)


def _surface(snapshot: SettingsSnapshot, record: SessionRecord) -> str:
    return rules_of(record.surface, snapshot.process.standings.of(record.principal))


async def _offered(
    snapshot: SettingsSnapshot,
    record: SessionRecord,
    window: int,
    mandate: Mandate | None,
    chosen: Mapping[str, str],
) -> tuple[Toolbox, Offer]:
    await snapshot.toolkit.ready(record.id)
    surface, narrowed = _surface(snapshot, record), snapshot.process.people.toolsets(record.conversation)
    narrowed = toolsets_by(mandate, tuple(chosen.get(TOOLSETS, "").split()) or narrowed)
    toolsets = snapshot.toolkit.built_in.toolsets(surface, narrowed)
    is_owner = snapshot.process.standings.is_owner(record.principal)
    if not is_owner and WALLED.intersection(toolsets) and not await asyncio.to_thread(snapshot.has_wall):
        narrowed = toolsets = tuple(name for name in toolsets if name not in WALLED) or toolsets
    toolbox = snapshot.toolkit.toolbox(surface, window, narrowed, record.id)
    return toolbox, snapshot.skills.meet(record, toolsets, toolbox.names)


async def _surroundings(
    snapshot: SettingsSnapshot, record: SessionRecord, offer: Offer, window: int, mandate: Mandate | None
) -> Environment:
    process, (skills, eligible) = snapshot.process, await offer.index()
    person = person_of(record.principal, process.standings.is_owner, record.conversation)
    found, persona = await found_notes(snapshot.notes, person)
    remembers = mandate is None or mandate.remembers
    look = partial(
        environment_of,
        home=process.home.root,
        workspace=Path(record.workspace),
        place=place_of(record.conversation, process.options.platform),
        now=process.machine.now(),
        notes=lambda: notes_of(process.home, snapshot.settings.memory, person, found) if remembers else ("", ()),
        window=window,
    )
    # What lies in the home is as near as the database: a thread would cost several times what it takes.
    is_near = Path(record.workspace).is_relative_to(process.home.root)
    around = look() if is_near else await asyncio.to_thread(look)
    told = [f"{SOUL} was changed outside: `hermes learn adopt {SOUL}` makes it yours."] if persona.trust else []
    ours = (*told, *snapshot.toolkit.wrong(), *await offer.broken())
    is_private = process.standings.is_owner(record.principal) and not person.shared
    wrong = (*around.warnings, *(ours if is_private else ()))
    trusted = await asyncio.to_thread(process.folders.is_trusted, record.workspace, record.id)
    vouched = Origin.WORKSPACE if trusted else Origin.FILE
    noted = Origin.FILE if found and around.memory else Origin.MEMORY
    labels = {"vouched": vouched, "noted": noted, "persona": persona if around.identity else Origin.RUNTIME}
    role = mandate.role if mandate else ""
    return replace(around, skills=skills, warnings=wrong, eligible=eligible, role=role, **labels)


async def _answering(snapshot: SettingsSnapshot, record: SessionRecord, ledger: Ledger) -> Model:
    """The session's main model. Raises `NoModel`."""
    model = await snapshot.broker(record.model, ledger)
    return snapshot.background.with_eyes(model, record, ledger, sees=model.sees)
