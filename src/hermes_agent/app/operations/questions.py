"""Operations on open questions: those that runs wait with, what answers one, and what the owner's answer to one under a
reply does."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes_agent.agent.agent import asks_approval
from hermes_agent.app.operations import trust
from hermes_agent.app.operations.access import Access, HomeSystem
from hermes_agent.app.operations.sessions import get_session
from hermes_agent.app.settings import API_PLATFORM
from hermes_agent.core.answers import TOO_SOON, OpenQuestion, answer_in, open_in
from hermes_agent.core.chat import Conversation, Inbound
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Answered
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.quick_replies import (
    COUNT,
    GOAL,
    KEEP,
    LATER,
    LESSON,
    NO,
    ONCE,
    may_answer,
    open_questions,
    replies_to,
    reply_in,
)
from hermes_agent.host.late import late

if TYPE_CHECKING:
    from hermes_agent.app.system import System
    from hermes_agent.core.forms import Field

PROVE = "hermes_agent.app.operations.goals:prove_goal"
WORDS_COUNT = "A model judges it. `/subgoal command CMD` adds a command that must pass."
TAIL = 20
"""Entries at the end of a log among which a question to be answered by words stands."""


DENY = "deny"
LONGEST_DECISION = 500
"""Characters of words that may decide about a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuestion:
    """A question that a run waits with; `at` is in seconds since 1970."""

    session: str
    question: str
    purpose: str
    text: str
    choices: tuple[str, ...]
    fields: tuple[Field, ...]
    at: float


async def list_questions(access: Access[HomeSystem]) -> list[RunQuestion]:
    """The questions that runs wait with, the oldest first: the owner sees everybody's, others their own."""
    store, found = access.system.store, []
    for each in await store.activity.active():
        if each.question and (access.sees_all or each.principal == access.who.key):
            entries = [entry async for page in store.history.since_last_end(each.session) for entry in page]
            found += [
                RunQuestion(
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
    if asks_approval(question) and answer != DENY and (way := way_to_approve(access)):
        raise HermesError(f"This program may not approve calls. Answer `{DENY}`, or approve on another surface. {way}")
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


def way_to_approve(access: Access[System]) -> str:
    """How the owner lets this program approve calls; empty where it may, or a person asks."""
    who = access.who
    if who.platform == API_PLATFORM:
        may = who.user in access.system.settings.api.approvers
        return "" if may else f"The owner lets this key approve by `{who.user}` in `api.approvers`."
    return "" if access.approves else "The owner lets it by `hermes mcp serve --approve`."


async def answer_to(system: System, session: str, said: str, *, is_private: bool) -> tuple[str, str]:
    """The id of the open question of the session's run that these words answer, and the answer they stand for; both
    empty for an ordinary message. Where others read along, words decide about no call."""
    decides = is_private and len(said) <= LONGEST_DECISION
    if not (decides or await system.hermes.scheduler.question(session)):
        return "", ""
    if not await system.store.inbox.under_way(session):
        return "", ""
    for each in sorted(await open_of(system, session), key=lambda each: each.asked.purpose != "clarify"):
        is_seen = system.clock.now() - each.at >= TOO_SOON
        may = each.asked.purpose == "clarify" or (decides and is_seen)
        if may and (answer := answer_in(each.asked, said)) is not None:
            return each.asked.question, answer
    return "", ""


async def open_of(system: System, session: str) -> list[OpenQuestion]:
    """The questions that the session's run waits with, oldest first."""
    pages = system.store.history.since_last_end(session)
    return open_in([entry async for page in pages for entry in page])


async def answer_in_words(access: Access[System], said: str, *, also: str = "") -> str | None:
    """Take a line for the answer to an open question of the session, or to `also`; what came of it. None where it is an
    ordinary message. Raises `HermesError`."""
    if not access.sees_all or not may_answer(said):
        return None
    entries, history = [], access.system.store.history
    if access.session:
        entries = await history.entries(access.session, max(0, await history.last_number(access.session) - TAIL))
    asked, brief = open_questions(entries)
    for question in (*asked, also):
        if reply := reply_in(question, said, brief=brief):
            return await answer_question(access, question, reply.word)
    return None


async def answer_question(access: Access[System], question: str, word: str) -> str:
    """Carry out a quick reply to a question of the session; what came of it. Raises `HermesError`."""
    access.check_owner("Only the owner answers that.")
    if word not in [each.word for each in replies_to(question)]:
        raise HermesError("That is no answer to this question.")
    if access.session:
        record = await access.system.hermes.record(access.session)
        done = Answered(question=question, answer=word, principal=access.who.key)
        with suppress(HermesError):  # It is busy in another process: the question stays as it looks.
            await access.system.hermes.notify(record, done)
    if question.startswith(GOAL):
        goal, _, proof = question.removeprefix(GOAL).partition(":")
        return str(await late(PROVE)(access, goal, proof)) if word == COUNT.word else WORDS_COUNT
    if question.startswith(LESSON):
        return await _of_lesson(access, question.removeprefix(LESSON), word)
    return await _of_folder(access, question, word)


async def _of_lesson(access: Access[System], name: str, word: str) -> str:
    found = access.system.learner.work.learned
    if word == LATER.word:
        return f"{name} waits: `/learn approve {name}` keeps it, `/learn log` lists what waits."
    if word == KEEP.word:
        return await found.approve(name)
    return f"{await found.reject(name)} The same is not proposed again."


async def _of_folder(access: Access[System], question: str, word: str) -> str:
    if word == NO.word:
        return await trust.decline_folder(access)
    news = await asyncio.to_thread(access.system.folders.news, access.folder)
    if news is None or news.id != question:
        raise HermesError("The folder changed since this was asked. `/trust` shows it, `/trust add` trusts it.")
    return await (trust.add_once(access) if word == ONCE.word else trust.add_folder(access))
