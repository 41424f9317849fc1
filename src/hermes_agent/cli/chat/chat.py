"""Chat controller for every terminal: handles typed lines, and feeds the session's events to the transcript."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from hermes_agent.app.operations.background import count_commands, is_reviewing, unserved
from hermes_agent.app.system import System
from hermes_agent.cli.chat.chat_session import ChatSession, Status, more_help
from hermes_agent.cli.chat.outgoing import Outgoing
from hermes_agent.cli.chat.own_commands import OWN, OwnCommands
from hermes_agent.cli.chat.resuming import replay, retell
from hermes_agent.cli.chat.text import BOLD, DIM, RED, YELLOW, one_line, paint
from hermes_agent.cli.chat.transcript import Page, Transcript
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.output import width
from hermes_agent.core.activity import Activity, activity
from hermes_agent.core.answers import answer_in
from hermes_agent.core.errors import HermesError, NoModel
from hermes_agent.core.events import (
    Asked,
    Event,
    RunEnded,
)
from hermes_agent.host.tasks import spawn
from hermes_agent.version import VERSION

log = logging.getLogger(__name__)

QUIT = ("/quit", "/exit", "/q", "exit", "quit")
TAKE_BACK_SECONDS = 0.5
COUNT_SECONDS = 2.0
"""Seconds between two looks at the background commands."""


class Chat:
    """Controller of a terminal chat: handles typed lines, follows its session. `changed` is called after all that
    affects the display. `over` is set when the person leaves, or when following ended with a `failure`."""

    def __init__(self, chat_session: ChatSession, transcript: Transcript, status: Status) -> None:
        self.chat_session = chat_session
        self.transcript = transcript
        self.status = status
        self.status.more = self._states
        self.over = False
        self.changed: Callable[[], None] = lambda: None
        self.failure: HermesError | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._watched = ""
        self.own = OwnCommands(chat_session, transcript, lambda: self.changed())
        self.outgoing = Outgoing(chat_session, transcript, self.own.outputs, lambda: self.changed())
        self._commands, self._unserved = 0, ""
        self._counting: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether a run is active or about to start."""
        return self.transcript.running or bool(self.transcript.waiting)

    @property
    def can_halt(self) -> bool:
        """Whether there is something that a stop ends."""
        shown = self.transcript
        return self.own.is_running or (shown.running and not shown.stopping) or bool(shown.waiting)

    @property
    def moves(self) -> bool:
        """Whether the status line changes by itself."""
        return self.busy or self.own.is_running or bool(self._commands) or is_reviewing(self.chat_session.runtime)

    def _states(self) -> list[str]:
        """States for the status line that no event tells."""
        runtime, queued = self.chat_session.runtime, len(self.transcript.waiting) if self.transcript.running else 0
        states = [
            "yolo" if runtime.unasked.holds(self.chat_session.session) else "",
            f"{queued} queued" if queued else "",
            f"{self._commands} in background" if self._commands else "",
            "reviewing" if is_reviewing(runtime) else "",
            self._unserved,
        ]
        return list(filter(None, states))

    async def _look_at_jobs(self) -> None:
        self._unserved = await unserved(self.chat_session.runtime)

    async def _count_commands(self) -> None:
        """Follow the background commands until none is left."""
        session, clock = self.chat_session.session, self.chat_session.runtime.clock
        while session == self.chat_session.session:
            self._commands = await count_commands(self.chat_session.runtime, session)
            self.changed()
            if not self._commands:
                return
            await clock.sleep(COUNT_SECONDS)
        self._commands = 0

    @property
    def question(self) -> Asked | None:
        """The first open question."""
        return next(iter(self.transcript.questions.values()), None)

    async def begin(self) -> None:
        """Show the greeting, and resume the session if there is one. Raises `StoreError`."""
        activity.set(Activity(notify=self._submit_to_run))
        self._greet()
        if self.chat_session.no_wall:
            self.transcript.remark(self.chat_session.no_wall, YELLOW)
        if self.chat_session.record is not None:
            await self._resume()
        spawn(self._look_at_jobs(), name="look at the jobs")

    def _submit_to_run(self, text: str) -> None:
        self.transcript.remark(text, YELLOW)
        self.changed()

    async def line(self, text: str) -> None:
        """Handle a line: answer the open question, run a command, or send a message."""
        if not text.strip():
            return
        try:
            await self._line(text)
        except HermesError as error:
            self.transcript.remark(str(error), RED)
        self.changed()

    async def answer(self, answer: str) -> None:
        """Answer the open question."""
        if self.question is not None:
            await self.chat_session.answer(self.question.question, answer)

    async def stop(self) -> None:
        """Stop the run at once, and give queued messages back to the input instead of running them."""
        self.transcript.stopping = self.transcript.running
        self.changed()
        # First, or the next run would begin with them; a slow disk does not delay the stop.
        await asyncio.wait({spawn(self.outgoing.take_back(), name="take back")}, timeout=TAKE_BACK_SECONDS)
        await self.chat_session.stop()

    def halt(self) -> None:
        """Stop the person's own command, else the run, without waiting; for keys and signals."""
        if self.own.is_running:
            spawn(self.own.stop(), name="stop the own command")
        else:
            spawn(self.stop(), name="stop")

    def close(self) -> None:
        """Stop following the session. Raises the failure that ended the chat."""
        for task in (self._watcher, self._counting):
            if task is not None:
                task.cancel()
        if self.failure is not None:
            raise self.failure

    def farewell(self) -> str:
        """The last line: the command that resumes the session."""
        if not self.chat_session.session:
            return ""
        profile = self.chat_session.runtime.home.profile
        command = f"hermes {f'-p {profile} ' if profile else ''}--resume {self.chat_session.session}"
        if self.transcript.running:
            return f"The run is not finished. Resume it with: {command}"
        return f"Come back with: {command}"

    async def _line(self, text: str) -> None:
        word = text.strip()
        if word in QUIT:
            self.over = True
        elif word.startswith("!") and len(word) > 1:
            await self.own.run(word[1:].strip())
        elif word == "/thinking":
            self.toggle_thoughts()
        elif word.partition(" ")[0] in OWN:
            await self.own.perform(*word.partition(" ")[::2])
        elif word == "/stop" and self.busy:
            self.transcript.said(word)
            await self.stop()
        elif self.question is not None and (answer := answer_in(self.question, text)) and not word.startswith("/"):
            await self.answer(answer)
        else:
            await self._command_or_words(text)

    def toggle_thoughts(self) -> None:
        """Switch between whole and shortened thoughts."""
        shown = self.transcript.show_thoughts = not self.transcript.show_thoughts
        self.transcript.remark(f"Thoughts are shown {'whole' if shown else 'in short'}.")

    async def _command_or_words(self, text: str) -> None:
        before = self.chat_session.session
        done = await self.chat_session.command(text, busy=self.transcript.running)
        if self.chat_session.session != before:
            await self._switched(begins=not before)
        if done is None:
            await self.outgoing.submit_words(self.chat_session.inbound(text))
            return
        if done.submit is not None:
            await self.outgoing.submit(done.submit)
        else:
            self.transcript.said(text)
            await self._look_at_jobs()
        if done.text:
            more = f"\n\nHere:\n{more_help()}" if text.strip() == "/help" else ""
            self.transcript.answer(f"{done.text}{more}")
        self._refresh()

    async def _switched(self, *, begins: bool) -> None:
        """Switch to another session; a new one (`begins`) has no history to show."""
        self.transcript.leave()
        if begins:
            self.status.session = self.chat_session.session
            self._watch(0)
        else:
            self.own.outputs()  # What was run for the other session is none of this one's.
            self.status = replace(self.chat_session.status(), more=self._states)
            await self._resume()

    async def _resume(self) -> None:
        entries = await self.chat_session.entries()
        retell(entries, self.transcript)
        last = replay(entries, self.transcript, self.status)
        interrupted = self.transcript.running
        self._watch(last)
        if not await self.chat_session.resume() and interrupted:
            self.transcript.running = False
            self.transcript.remark("Another process is running this session.", YELLOW)

    def _refresh(self) -> None:
        record = self.chat_session.record
        if record is None:
            return
        self.status.title = record.title
        try:
            fresh = self.chat_session.status()
        except NoModel as error:
            self.transcript.remark(str(error), RED)
        else:
            self.status.model, self.status.window = fresh.model, fresh.window

    def _watch(self, after: int) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
        self._watcher = spawn(self._see(self.chat_session.session, after), name=f"watch {self.chat_session.session}")

    async def _see(self, session: str, after: int) -> None:
        try:
            async with aclosing(self.chat_session.runtime.hermes.watch(session, after)) as events:
                async for seen in events:
                    self._show(seen.event)
        except HermesError as error:
            self.failure, self.over = error, True
            self.changed()

    def _show(self, event: Event) -> None:
        # Boundary: one event listener.
        try:
            self.status.see(event)
            self.transcript.see(event)
            ends = isinstance(event, RunEnded) and self.status.background
            if ends and (self._counting is None or self._counting.done()):
                self._counting = spawn(self._count_commands(), name="count background commands")
        except Exception:
            log.exception("%s cannot be shown", event.kind)
            self.transcript.remark(f"({event.kind} could not be shown; logs/hermes.log has the details.)", RED)
        self.changed()

    def _greet(self) -> None:
        chat_session = self.chat_session
        route = chat_session.runtime.route(chat_session.record.model if chat_session.record is not None else "")
        # What answers from within this program is no model.
        scripted = " (scripted model)" if route.vendor.server else ""
        lines = [
            f"{paint('Hermes', BOLD)} {VERSION} · {self.status.model}{scripted}",
            paint(place_line(short_path(chat_session.folder), self._name(), self.transcript.width), DIM),
        ]
        self.transcript.head("\n".join(lines))
        if chat_session.runtime.notice:
            self.transcript.remark(chat_session.runtime.notice, YELLOW)
        if (news := chat_session.runtime.folders.question(chat_session.folder)) is not None:
            chat_session.asked = news.id
            self.transcript.see(news.notice)

    def _name(self) -> str:
        record = self.chat_session.record
        if record is None:
            return "new session"
        return f"session {record.id}" + (f" ({one_line(record.title, 40)})" if record.title else "")


def short_path(folder: str) -> str:
    """A folder with `~` for the home folder."""
    home = str(Path.home())
    return f"~{folder[len(home) :]}" if folder == home or folder.startswith(f"{home}/") else folder


def place_line(folder: str, session: str, columns: int) -> str:
    """Folder, session and a help hint; shortened on a narrow terminal."""
    if width(line := f"{folder} · {session} · /help, /keys") <= columns:
        return line
    room = max(8, columns - width(session) - 3)
    return f"{folder if width(folder) <= room else '…' + folder[1 - room :]} · {session}"


async def open_chat(runtime: System, invocation: Invocation, page: Page, render: Callable[[str, int], str]) -> Chat:
    """Create the chat on a page. Raises `NoModel` and `UnknownSession`."""
    chat_session = ChatSession(runtime, invocation)
    await chat_session.open()
    chat_session.no_wall = await runtime.no_wall()
    return Chat(chat_session, Transcript(page, runtime.clock, render), chat_session.status())
