"""Operations on runs for programs: start one, follow it to its end or its question, stop it, and answer what runs
ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.app.operations.sessions import get_session, last_number
from hermes_agent.core.answers import open_in
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Asked, Event, MessageTaken, RunEnded, Seen
from hermes_agent.core.inbound import Busy, Conversation, Inbound
from hermes_agent.core.messages import Origin, Text
from hermes_agent.host.tasks import spawn
from hermes_agent.tools.surfaces import rules_of

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem
    from hermes_agent.app.system import System
    from hermes_agent.core.forms import Field


@dataclass(slots=True, kw_only=True)
class StartedRun:
    """A message that was accepted: its session, its row of the inbox, the log's number before its events, and its run,
    once that began."""

    session: str
    row: int
    after: int
    inbound: Inbound
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """A question that a run waits with; `at` is in seconds since 1970."""

    session: str
    question: str
    purpose: str
    text: str
    choices: tuple[str, ...]
    fields: tuple[Field, ...]
    at: float


async def start_run(
    access: Access[System], text: str, where: Conversation, *, origin: Origin, session: str = ""
) -> StartedRun:
    """Submit a message for a run of its own, in a session (empty: a new one, of this conversation). `origin` says who
    wrote it. Raises `HermesError`."""
    system = access.system
    if not text.strip():
        raise HermesError("There is nothing to do: the message is empty.")
    if session:
        where = Conversation.parse((await get_session(access, session)).conversation)
    inbound = Inbound(
        source=access.who.platform,
        source_id=f"{system.ids.short()}{system.ids.short()}",
        principal=access.who,
        conversation=where,
        parts=(Text(text=text, origin=origin),),
        received=system.clock.now(),
        busy=Busy.ALONE,
    )
    if session:
        after = await last_number(system, session)
        submitted = await system.hermes.submit(inbound, session)
    else:
        after, folder = 0, access.folder or str(system.home.root / "workspace")
        await asyncio.to_thread(Path(folder).mkdir, parents=True, exist_ok=True)
        submitted = await system.hermes.start_session(inbound, workspace=folder)
    assert submitted.inbox is not None  # Its identity is new.
    return StartedRun(session=submitted.session, row=submitted.inbox, after=after, inbound=inbound)


async def follow_run(access: Access[System], started: StartedRun, show: Callable[[Event], None]) -> RunEnded | Asked:
    """Show the events of the message's run, up to its end or to a question for a person. Cancelling stops the run.
    Raises `NothingMore` where no run takes the message, `UnknownSession` where the session is deleted."""
    try:
        return await _followed(access, started, show)
    except asyncio.CancelledError:
        await asyncio.shield(spawn(_stop(access, started), name=f"stop of {started.session}"))
        raise


async def _followed(access: Access[System], started: StartedRun, show: Callable[[Event], None]) -> RunEnded | Asked:
    async with aclosing(access.system.hermes.watch(started.session, started.after, started.row)) as events:
        while not isinstance(last := _taken(started, await anext(events)), RunEnded | Asked):
            if last is not None:
                show(last)
        return last


def _taken(started: StartedRun, seen: Seen) -> Event | None:
    """The event, if it is of the message's run."""
    if isinstance(seen.event, MessageTaken) and seen.event.inbox == started.row:
        started.run = seen.run
    return seen.event if started.run and seen.run == started.run else None


async def _stop(access: Access[System], started: StartedRun) -> None:
    """Stop the message's run, also before it begins, and no other one."""
    hermes, inbound = access.system.hermes, started.inbound
    if started.run:
        await hermes.stop_run(started.session, started.run, started.row)
        return
    back = replace(inbound, source_id=f"{inbound.source_id}:stop", parts=(), withdraws=inbound.source_id)
    await hermes.withdraw(back)


async def list_questions(access: Access[HomeSystem]) -> list[OpenQuestion]:
    """The questions that runs wait with, the oldest first: the owner sees everybody's, others their own."""
    store, found = access.system.store, []
    for each in await store.activity.active():
        if each.question and (access.sees_all or each.principal == access.who.key):
            entries = [entry async for page in store.history.since_last_end(each.session) for entry in page]
            found += [
                OpenQuestion(
                    session=each.session,
                    question=waiting.asked.question,
                    purpose=waiting.asked.purpose,
                    text=waiting.asked.text,
                    choices=waiting.asked.choices,
                    fields=waiting.asked.fields,
                    at=waiting.at,
                )
                for waiting in open_in(entries)
            ]
    return sorted(found, key=lambda each: each.at)


async def answer_open(access: Access[System], session: str, question: str, answer: str, origin: Origin) -> None:
    """Answer a question that a run waits with: one of its choices, free text, or the JSON object of its fields;
    `origin` says who wrote it. Raises `HermesError` for one that is not this person's, or not open any more."""
    await get_session(access, session)
    inbound = Inbound(
        source=access.who.platform,
        source_id=f"answer:{session}:{question}",
        principal=access.who,
        conversation=Conversation(platform=access.who.platform, chat=access.who.user),
        parts=(Text(text=answer, origin=origin),),
        received=access.system.clock.now(),
        answers=question,
    )
    await access.system.hermes.submit(inbound, session)


def toolsets_of(access: Access[System]) -> tuple[str, ...]:
    """The toolsets that the agent has where this person asks."""
    surface = rules_of(access.who.platform, access.who.standing)
    return access.system.snapshots.now.toolkit.built_in.toolsets(surface)
