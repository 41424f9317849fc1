"""Compacts one conversation in steps: prune tool results, summarise, trim. Each step counts only if the view gets
smaller."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

from hermes_agent.agent.compaction.compactor import GAIN, Cut, Room, cut
from hermes_agent.agent.compaction.shorten import (
    WRITER,
    asked,
    earlier,
    files_named,
    files_told,
    is_long,
    portions,
    quoted,
    shown,
    trimmed,
)
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.prompt import Tail
from hermes_agent.agent.session import Session, pruned
from hermes_agent.core.clock import Ids
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, MalformedReply, StoreError
from hermes_agent.core.events import Cause, Compacted, Notice, Strategy
from hermes_agent.core.messages import KEPT_WHOLE, Message, Model, ModelRequest, Reply, said
from hermes_agent.core.section import Section, estimate_tokens, freeze, tokens_of

log = logging.getLogger(__name__)

NOTE_SHARE = 0.3
"""Share of the room that the note may take."""

LONGEST_NOTE = 4_000
"""Tokens of a note, however large the window is."""

MOST_PORTIONS = 8
"""Requests that one summary may take; what is longer is cut down more."""

LEAVING_TOKENS = 4_000
"""Tokens of what is told of the part that leaves the window."""


def _untold(session: str, text: str) -> None:
    """Nobody wants to know."""


async def _unkept(text: str) -> str:  # noqa: ARG001 - the shape of what keeps
    """There is the log alone."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortener:
    """Prunes, summarises or trims the view of one session.

    `writers` gives the models that may write the summary, the cheaper one first, each within `seconds` and the
    run's `deadline`. `redact` removes secrets from the note. `leaving` is called right before the commit with the
    session id and the text that the note replaces; it must not block. `keep` writes a long message to a file and
    returns its path, empty where no file is written.
    """

    seconds: float
    writers: Callable[[], Awaitable[Sequence[Model]]]
    tail: Tail | None
    deadline: float | None
    ids: Ids
    redact: Callable[[str], str] = str
    leaving: Callable[[str, str], None] = _untold
    keep: Callable[[str], Awaitable[str]] = _unkept

    async def shorten(self, session: Session, journal: Journal, room: Room, *, cause: Cause, focus: str = "") -> bool:
        """Compact the view; False where there is nothing to gain or a call is open. Commits all changes at once,
        with the repeated notes of the runtime."""
        if session.open_calls:
            return False
        await journal.settled()
        plan = cut(session.messages, session.weights, room)
        event = self._prune(session, room, plan, cause)
        if event is None or event.after > room.target or focus:
            event = await self._replace(session, room, plan, cause=cause, focus=focus) or event
        if event is None:
            return False
        if event.note is not None:
            rest = earlier(session.messages[plan.head : plan.upto])[1]
            self.leaving(session.id, self.redact(trimmed(rest, LEAVING_TOKENS)))
        journal.post(event, *described(session, plan) if event.note is not None else (), durable=True)
        if self.tail is not None and (again := await self.tail.context_for(session, "")):
            journal.post(again, durable=True)
        await journal.settled()
        return True

    def _prune(self, session: Session, room: Room, plan: Cut, cause: Cause) -> Compacted | None:
        """Old tool results as one line each, where that alone is enough of a gain."""
        if not plan.pruned:
            return None
        length = len(session.messages)
        return _smaller(session, Cut(head=length, upto=length, pruned=plan.pruned), None, ("prune", cause, ""), room)

    async def _replace(self, session: Session, room: Room, plan: Cut, *, cause: Cause, focus: str) -> Compacted | None:
        middle = session.messages[plan.head : plan.upto]
        if not middle or _smaller(session, plan, None, ("summary", cause, ""), room) is None:
            return None  # Not even an empty note would be enough of a gain.
        kept = sum(session.weights[: plan.head]) + sum(session.weights[plan.upto :])
        most = min(LONGEST_NOTE, max(64, min(round(room.limit * NOTE_SHARE), room.limit - kept)))
        words = "\n".join(filter(None, (quoted(middle, most // 4), files_told(await self._files(middle), most // 4))))
        for writer in await self.writers():
            record = await self._summary(session, writer, middle, most - estimate_tokens(words), focus)
            event = record and _smaller(session, plan, f"{record}\n{words}", ("summary", cause, writer.name), room)
            if event:
                return event
        record = self.redact(trimmed(middle, most - estimate_tokens(words)))
        return _smaller(session, plan, f"{record}\n{words}", ("trim", cause, ""), room)

    async def _files(self, middle: Sequence[Message]) -> dict[str, str]:
        """The files that hold what the note leaves out, the newest first; long messages are written to some."""
        named = files_named(middle)
        for message in middle:
            if is_long(message) and (path := await self.keep(message.text)):
                begins = re.sub(r"[^\w.,:/]+", " ", message.text[:80]).strip()
                words = f'{len(message.text):,} characters that begin "{begins}", {KEPT_WHOLE} `{path}`'
                named = {path: words} | named
        return named

    async def _summary(self, session: Session, writer: Model, middle: Sequence[Message], most: int, focus: str) -> str:
        """The record that a model writes, redacted; empty where it failed, was silent, or wrote more than it may."""
        record, rest = earlier(middle)
        room = max(256, writer.window // 2)
        texts = list(portions(rest, room))
        if len(texts) > MOST_PORTIONS:
            texts = list(portions([said(trimmed(rest, room * (MOST_PORTIONS - 1)))], room))
        try:
            for text in texts:
                record = await self._ask(session, writer, asked(record, text, focus), most)
        except StoreError:
            raise
        except (HermesError, TimeoutError) as error:
            log.warning("The summary of session %s by %s failed: %s", session.id, writer.name, error)
            return ""
        return self.redact(record) if estimate_tokens(record) <= most * 2 else ""

    async def _ask(self, session: Session, writer: Model, question: str, most: int) -> str:
        prefix = freeze((Section(name="record", text=WRITER.format(words=most // 2)),), ())
        request = ModelRequest(
            call_id=self.ids.short(),
            session=session.id,
            run=session.run,
            turn=session.turn,
            purpose="compression",
            prefix=prefix,
            messages=(said(question),),
            deadline=self.deadline,
            max_output=most * 2,
            effort="low",
            use_tools=False,
        )
        async with asyncio.timeout(self.seconds), aclosing(writer.ask(request)) as stream:
            async for piece in stream:
                if isinstance(piece, Reply):
                    return piece.message.text
        raise MalformedReply("The stream ended without a reply.", model=writer.name)


def described(session: Session, plan: Cut) -> tuple[Notice, ...]:
    """Notices about long messages that the model no longer sees."""
    sizes = [len(each.text) for each in session.messages[plan.head : plan.upto] if is_long(each)]
    if not sizes:
        return ()
    which = "a long message" if len(sizes) == 1 else f"{len(sizes)} long messages"
    words = (
        f"To make room in the model's window, {which} of yours ({sum(sizes):,} characters) is now a summary to it. All "
        "of it stays in the conversation, and in a file that the model can read."
    )
    return (Notice(text=words, level="news"),)


def _smaller(
    session: Session,
    plan: Cut,
    record: str | None,
    how: tuple[Strategy, Cause, str],
    room: Room,
) -> Compacted | None:
    """The event, where it gains enough."""
    note = shown(record, session.label) if record is not None else None
    ids = frozenset(plan.pruned)
    view = [*session.messages[: plan.head], *filter(None, [note]), *session.messages[plan.upto :]]
    before, after = sum(session.weights), sum(tokens_of(pruned(message, ids)) for message in view)
    strategy, cause, writer = how
    if after > before - GAIN * min(before, room.limit):
        return None
    return Compacted(
        head=plan.head,
        upto=plan.upto,
        note=note,
        pruned=plan.pruned,
        before=before,
        after=after,
        strategy=strategy,
        cause=cause,
        writer=writer,
    )
