"""One session that an editor has open: its events become updates, and prompts of the editor messages of its runs."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace

from acp import schema

from hermes_agent.acp.content import Block, parts_of
from hermes_agent.acp.editor import Editor
from hermes_agent.acp.options import SessionOptions
from hermes_agent.acp.speech import SPEECHES, Speech, notice
from hermes_agent.acp.thread import Named, Questions, Thread
from hermes_agent.app.operations.choices import agree, agreed
from hermes_agent.app.operations.questions import answer_in_words, answer_question, answer_to, open_of
from hermes_agent.app.operations.runs import follow_run, submit_run
from hermes_agent.app.operations.sessions import SessionRecord, last_number, read_log
from hermes_agent.app.system import System
from hermes_agent.app.tool_sources import EditorServer
from hermes_agent.core.chat import Inbound
from hermes_agent.core.errors import HermesError, NothingMore
from hermes_agent.core.events import Asked, Entry, Event, MessageTaken, Outcome, Replied, RunEnded, Seen, Undone
from hermes_agent.core.messages import Origin, StopReason, Text
from hermes_agent.core.quick_replies import ONCE, TRUST
from hermes_agent.host.tasks import spawn

log = logging.getLogger(__name__)
PAGE, MOST_SHOWN = 200, 2_000
STOP_SECONDS = 1.5
"""Seconds after a cancel in which the run may end before the prompt is answered without it."""
REASONS: dict[Outcome | StopReason, schema.StopReason] = {
    Outcome.STOPPED: "cancelled",
    Outcome.LIMIT: "max_turn_requests",
    StopReason.REFUSED: "refusal",
    StopReason.LENGTH: "max_tokens",
}
TRUST_OPTIONS: Named = {
    TRUST.word: ("allow_always", "Trust this folder"),
    ONCE.word: ("allow_once", "This time only"),
    "not now": ("reject_once", "Not now"),
}
SERVER_OPTIONS: Named = {
    "once": ("allow_once", "Use them in this thread"),
    "always": ("allow_always", "Always use exactly these"),
    "deny": ("reject_once", "Do not use them"),
}
FOLDERS = "\n\n[This session works in these folders too: {}]"
SERVERS = "May I use the MCP servers of this editor here? They start behind the wall:\n{}"


class Failed(HermesError):
    """A run failed; `error` is the class of its error."""

    def __init__(self, text: str, error: str) -> None:
        super().__init__(text)
        self.error = error


class EditorSession(Thread):
    """A session that is followed and takes prompts, from `open` to `close`. `servers` are the editor's own, until the
    person was asked about them; `folders` those besides the workspace, until the model was told of them."""

    def __init__(self, system: System, editor: Editor, record: SessionRecord, source: str) -> None:
        super().__init__(system, editor, record, source)
        self.options, self.questions = SessionOptions(self), Questions(self)
        self.servers: Sequence[EditorServer] = ()
        self.folders: Sequence[str] = ()
        self._prompts: set[asyncio.Task[schema.PromptResponse | HermesError]] = set()
        self._own: set[int] = set()
        self._watching: asyncio.Task[None] | None = None
        self._number, self._moved = 0, asyncio.Event()
        self._cost: float | None
        self._speech: Speech
        self._has_asked_trust = False

    async def open(self, *, shows: bool) -> None:
        """Follow the session from where it is, or with `shows` from its beginning, without what was undone; ask again
        what its run waits for. Prompts under way go on."""
        before, was_open = self._number, self._watching is not None
        try:
            await self._begin(shows=shows)
        except BaseException:
            if was_open:  # Prompts wait for what is shown.
                self._number = min(self._number, before)
                self._follow()
            raise

    async def _begin(self, *, shows: bool) -> None:
        await self._unfollow()
        self._speech = SPEECHES[self.editor.version](self.record.workspace)
        self._number, self._cost = 0 if shows else await last_number(self.system, self.record.id), 0.0
        undone = [
            range(entry.event.to + 1, entry.number + 1)
            async for entry in self._entries()
            if isinstance(entry.event, Undone)
        ]
        async for entry in self._entries():
            if not any(entry.number in each for each in undone):
                await self._show(entry)
            self._at(entry.number)
        for each in await open_of(self.system, self.record.id):
            self.questions.see(each.asked)
        self._follow()

    def _follow(self) -> None:
        self._watching = spawn(self._watch(), name=f"watch {self.record.id} for the editor")

    async def _entries(self) -> AsyncIterator[Entry]:
        after = self._number
        while page := await read_log(self.access, self.record.id, after, PAGE):
            for entry in page:
                yield entry
            after = page[-1].number

    async def _unfollow(self) -> None:
        self.questions.withdraw()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait((self._watching,))

    async def close(self) -> None:
        """End the prompts and their runs, and follow the session no more."""
        self.cancel()
        if self.system.hermes.runs(self.record.id):
            await self.system.hermes.stop(self.record.id)
        await self._unfollow()
        self.system.unasked.take_back(self.record.id)
        self.system.buffers.drop(self.record.id)
        await self.system.editor_servers.drop(self.record.id)

    def cancel(self) -> None:
        """Cancel the prompts under way."""
        for each in self._prompts:
            self.questions.withdraw()
            each.cancel()
            asyncio.get_running_loop().call_later(STOP_SECONDS, each.cancel)  # Without the end of what stops its run.

    async def _watch(self) -> None:
        try:
            async with aclosing(self.system.hermes.watch(self.record.id, self._number)) as events:
                async for seen in events:
                    await self._see(seen)
        except HermesError as error:  # Prompts that wait see it themselves.
            log.warning("%s is followed no more: %s", self.record.id, error)
        finally:
            self._at(sys.maxsize)

    async def _see(self, seen: Seen) -> None:
        # Boundary: one event listener.
        try:
            self.questions.see(seen.event)
            await self._show(seen, own=isinstance(seen.event, MessageTaken) and seen.event.inbox in self._own)
            if isinstance(seen.event, RunEnded):
                self.options.refresh()
        except Exception:
            log.exception("%s cannot be shown", seen.event.kind)
        self._at(seen.number)

    async def _show(self, seen: Seen | Entry, *, own: bool = False) -> None:
        event = seen.event
        for update in self._speech.updates(seen, own=own):
            await self.show(update)
        if isinstance(event, Replied) and event.usage.known:
            self._cost = None if self._cost is None or event.cost is None else self._cost + event.cost
            cost = None if self._cost is None else schema.Cost(amount=self._cost, currency="USD")
            used, size = event.usage.input + event.usage.output, self.options.window()
            await self.show(schema.UsageUpdate(session_update="usage_update", used=used, size=size, cost=cost))

    def _at(self, number: int) -> None:
        self._number = number
        self._moved.set()

    async def _until_shown(self, number: int) -> None:
        while self._number < number:
            self._moved.clear()
            await self._moved.wait()

    async def prompt(self, blocks: Sequence[Block]) -> schema.PromptResponse:
        """Answer a prompt. Raises `HermesError`; a cancelled one is always answered within two seconds."""
        work = spawn(self._outcome(blocks), name=f"prompt in {self.record.id}")
        self._prompts.add(work)
        try:
            await asyncio.wait((work,))
        finally:
            self._prompts.discard(work)
            work.cancel()
        if work.cancelled():
            return schema.PromptResponse(stop_reason="cancelled")
        if isinstance(found := work.result(), HermesError):
            raise found
        return found

    async def _outcome(self, blocks: Sequence[Block]) -> schema.PromptResponse | HermesError:
        try:
            if isinstance(found := await self._message(blocks), Inbound):
                return await self._run(found)
            await self.say(found)
            await self.options.show_changed()
            return schema.PromptResponse(stop_reason="end_turn")
        except HermesError as error:
            return error

    async def _message(self, blocks: Sequence[Block]) -> Inbound | str:
        """What a run is told, or what came of a command or an answer. Raises `HermesError`."""
        record, system = await self.refresh(), self.system
        parts = await parts_of(blocks, system, record.workspace, record.id)
        typed = [part for part in parts if isinstance(part, Text) and part.origin is self.origin]
        line = "".join(part.text for part in typed)
        if (text := await answer_in_words(self.access, line)) is not None:
            return text
        question, answer = await answer_to(system, record.id, line, is_private=True)
        if question:
            return self.inbound((Text(text=answer, origin=self.origin),), question)
        if (done := await self.perform(line)) is None:
            return self.inbound(parts)
        if done.submit is None:
            return done.text
        return replace(done.submit, parts=(*done.submit.parts, *(part for part in parts if part not in typed)))

    async def _run(self, inbound: Inbound) -> schema.PromptResponse:
        system, replies, session, text = self.system, list[Replied](), self.record.id, ""
        system.route(inbound.model or self.record.model)  # Without a model nothing is begun.
        await self._consent()

        def see(event: Event) -> None:
            if isinstance(event, Replied):
                replies.append(event)

        try:
            started = await submit_run(self.access, session, self._told(inbound))
            self._own.add(started.row)
            while isinstance(last := await follow_run(self.access, started, see), Asked):
                if not self.questions.shows(last):
                    text = last.text
                    break
            await self._until_shown(started.after)
        except NothingMore as error:
            last, text = None, str(error)
        except asyncio.CancelledError:
            await self._until_shown(await last_number(system, session))
            raise
        if text:
            await self.say(text)
        if isinstance(last, RunEnded) and last.outcome is Outcome.FAILED:
            raise Failed(last.text, last.error)
        return _response(last, replies, started.run)

    def _told(self, inbound: Inbound) -> Inbound:
        """The message, with the folders that the model does not know of."""
        if not self.folders or inbound.answers:
            return inbound
        told, self.folders = FOLDERS.format(", ".join(" ".join(each.split()) for each in self.folders)), ()
        return replace(inbound, parts=(*inbound.parts, Text(text=told, origin=Origin.RUNTIME)))

    async def _consent(self) -> None:
        """Before the first run: say what is wrong here, and ask whether the folder and the MCP servers are trusted."""
        if not self._has_asked_trust:
            self._has_asked_trust = True
            if self.system.notice:
                await self.show(notice(self.system.notice, self.record.id))
            news = await asyncio.to_thread(self.system.folders.question, self.record.workspace)
            if news is not None and news.files:
                word = await self.questions.choose(news.id, news.notice.text, TRUST_OPTIONS)
                if word in (TRUST.word, ONCE.word):
                    await self.say(f"{await answer_question(self.access, news.id, word)}\n\n")
        servers, self.servers = self.servers, ()
        if servers and await self._agree(servers):
            await self.system.editor_servers.put(self.record.id, servers)

    async def _agree(self, servers: Sequence[EditorServer]) -> bool:
        digest = hashlib.sha256("\n".join(each.config for each in servers).encode()).hexdigest()[:32]
        if self.system.settings.acp.trust_servers or await agreed(self.access, digest):
            return True
        said = "\n".join(f"- {each.name}: {_line(each.where)}" for each in servers)
        word = await self.questions.choose("servers", SERVERS.format(said), SERVER_OPTIONS)
        if word == "always":
            await agree(self.access, digest)
        return word in ("once", "always")


def _line(text: str) -> str:
    """A command line or address on one line, so that it can pass for nothing else."""
    shown, more = "".join(each if each.isprintable() else " " for each in text), len(text) - MOST_SHOWN
    return f"{shown[:MOST_SHOWN]} (and {more:,} characters more)" if more > 0 else shown


def _response(last: Event | None, replies: Sequence[Replied], run: str) -> schema.PromptResponse:
    """The answer to a prompt: how its run ended (None: it goes on, or there is none), with tokens and cost."""
    end: Outcome | StopReason = last.outcome if isinstance(last, RunEnded) else Outcome.ANSWERED
    end = replies[-1].stop if end is Outcome.ANSWERED and isinstance(last, RunEnded) and replies else end
    names = ("input", "output", "reasoning", "cached", "cache_write")
    used = {name: sum(getattr(each.usage, name) for each in replies) for name in names}
    usage = schema.Usage(
        total_tokens=used["input"] + used["output"],
        input_tokens=used["input"],
        output_tokens=used["output"],
        thought_tokens=used["reasoning"],
        cached_read_tokens=used["cached"],
        cached_write_tokens=used["cache_write"],
    )
    costs = [each.cost for each in replies if each.cost is not None]
    meta = {"hermes": {"run": run, "cost": sum(costs) if len(costs) == len(replies) else None}}
    return schema.PromptResponse(stop_reason=REASONS.get(end, "end_turn"), usage=usage, field_meta=meta)
