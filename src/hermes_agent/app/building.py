"""Makes the agent of a run out of a settings snapshot."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.compaction.compactor import Compactor, Shortens
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.prompt import Environment, SessionPrompt, sections_of
from hermes_agent.agent.tail import Now, Tail, TailSource
from hermes_agent.app.chats.platforms import ThisRun, place_of
from hermes_agent.app.environment_prompt import environment_of
from hermes_agent.app.snapshot import SettingsSnapshot
from hermes_agent.core.budget import Budget, Limits
from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import HermesError, NoModel
from hermes_agent.core.model import Model, ToolSchema
from hermes_agent.core.section import Section
from hermes_agent.host.late import late
from hermes_agent.memory.whose import person_of
from hermes_agent.providers.broker import Ledger
from hermes_agent.replay.ledger import RunLedger, StoredLedger
from hermes_agent.replay.seam import Seam
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.tools.surfaces import UNATTENDED, rules_of
from hermes_agent.tools.toolbox import PassingTools, Toolbox

if TYPE_CHECKING:
    from hermes_agent.app.skills import Offer

UNFENCED = "hermes_agent.memory.unfenced:Unfenced"
SNAPSHOT = "hermes_agent.memory.snapshot:snapshot"
SHORTENER = "hermes_agent.agent.compaction.shorten:Shortener"


async def prompt_of(
    snapshot: SettingsSnapshot, record: SessionRecord
) -> tuple[tuple[Section, ...], tuple[ToolSchema, ...]]:
    """The sections and tools of the prompt that this session would begin with now, also where there is no model."""
    await snapshot.catch_up()
    try:
        window = (await snapshot.broker(record.model, StoredLedger(snapshot.book, record.principal))).window
    except NoModel:
        window = 0
    toolbox, offer = _offered(snapshot, record, window)
    return sections_of(await _surroundings(snapshot, record, offer, window), toolbox.offered), toolbox.offered


async def agent_of(snapshot: SettingsSnapshot, record: SessionRecord, journal: Journal) -> Agent:
    """The agent for a run of this session. Raises `NoModel`."""
    await snapshot.catch_up()
    agent = await agent_at(snapshot, record, journal, snapshot.process.seam)
    if (hooks := snapshot.hooks) is None:
        return agent
    hooks.begun(record.id)
    finishing = hooks.reply if hooks.waits_for("reply:before") else None
    return replace(agent, hooks=(*agent.hooks, *hooks.around_calls()), finishing=finishing)


async def agent_at(snapshot: SettingsSnapshot, record: SessionRecord, journal: Journal, seam: Seam) -> Agent:
    """The agent of this session behind a seam. Raises `NoModel`."""
    process, settings, own = snapshot.process, snapshot.settings, seam.own(record.id)
    attended = process.options.attended and record.surface not in UNATTENDED
    await seam.start_run(record, process.store)
    ledger = RunLedger(replace(snapshot.book, clock=own.clock), journal, record)
    try:
        model = await seam.model(record.id, "", ledger, partial(_answering, snapshot, record))
    except HermesError as error:
        seam.refused(record.id, error)
        raise
    toolbox, offer = _offered(snapshot, record, model.window)
    look_around = partial(_surroundings, snapshot, record, offer, model.window)
    limits = _limits(snapshot, own.clock)
    recall = snapshot.memory.recall(record) if snapshot.memory else None
    sources: list[TailSource] = [
        Now(own.clock),
        ThisRun(attended=attended, reading=process.options.reading),
        *snapshot.toolkit.tail,
        PassingTools(toolbox),
        *offer.tail,
        *([recall] if recall else []),
    ]
    tail = Tail(seam.tail(record.id, sources), own.ids)
    beside = snapshot.background.of_run(record, ledger, seam, journal.session, limits.deadline)

    def shortener() -> Shortens:
        made: Shortens = late(SHORTENER)(
            seconds=settings.compaction.seconds,
            writers=lambda: beside.writers(model),
            tail=tail,
            deadline=limits.deadline,
            ids=own.ids,
            redact=process.secrets.redact,
            keep=snapshot.intake.kept,
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
            process.options.capabilities,
            beside.judge,
            attended=attended,
            session=record.id,
            surface=_surface(snapshot, record),
        ),
        effort=settings.model.reasoning_effort,
        max_parallel=settings.agent.max_parallel,
        attended=attended,
        redact=process.secrets.redact,
        tail=tail,
        compactor=Compactor(settings=settings.compaction, shortener=shortener),
        closing=snapshot.learner.closing(record, toolbox.names),
        location=snapshot.toolkit.location,
    )
    return seam.outfit(record.id, agent)


def _surface(snapshot: SettingsSnapshot, record: SessionRecord) -> str:
    return rules_of(record.surface, snapshot.process.standings.of(record.principal))


def _offered(snapshot: SettingsSnapshot, record: SessionRecord, window: int) -> tuple[Toolbox, Offer]:
    surface, narrowed = _surface(snapshot, record), snapshot.process.people.toolsets(record.conversation)
    toolbox = snapshot.toolkit.toolbox(surface, window, narrowed)
    toolsets = snapshot.toolkit.built_in.toolsets(surface, narrowed)
    return toolbox, snapshot.skills.meet(record, toolsets, toolbox.names)


async def _surroundings(snapshot: SettingsSnapshot, record: SessionRecord, offer: Offer, window: int) -> Environment:
    process, skills = snapshot.process, await offer.index()
    person = person_of(record.principal, process.standings.is_owner, record.conversation)
    look = partial(
        environment_of,
        home=process.home.root,
        workspace=Path(record.workspace),
        place=place_of(record.conversation, process.options.platform),
        now=process.machine.now(),
        notes=lambda: late(SNAPSHOT)(process.home, snapshot.settings.memory, person),
        window=window,
    )
    # What lies in the home is as near as the database: a thread would cost several times what it takes.
    is_near = Path(record.workspace).is_relative_to(process.home.root)
    around = look() if is_near else await asyncio.to_thread(look)
    wrong = (*around.warnings, *snapshot.toolkit.wrong(), *await offer.broken())
    return replace(around, skills=skills, warnings=wrong)


async def _answering(snapshot: SettingsSnapshot, record: SessionRecord, ledger: Ledger) -> Model:
    """The model that answers in this session. Raises `NoModel`."""
    model = await snapshot.broker(record.model, ledger)
    return snapshot.background.with_eyes(model, record, ledger, sees=model.sees)


def _limits(snapshot: SettingsSnapshot, clock: Clock) -> Limits:
    agent = snapshot.settings.agent
    deadline = None if agent.max_seconds is None else clock.monotonic() + agent.max_seconds
    return Limits(turns=agent.max_turns, deadline=deadline)
