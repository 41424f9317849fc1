"""Start of the terminal chat: opens the system, chooses full-screen or line mode, and runs until the person leaves."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping

from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.system import System
from hermes_agent.cli.chat.chat import Chat, open_chat
from hermes_agent.cli.chat.questions import question_lines
from hermes_agent.cli.chat.text import clean, plain
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.options import Invocation, recording_of
from hermes_agent.cli.output import has_controls
from hermes_agent.host.late import late
from hermes_agent.host.loops import asked_to_end
from hermes_agent.host.paths import environment, find_home

WIDTH = 160
"""Cells that a summary may have where the output is no terminal; replies are not cut."""
MOST_WAITING = 1000
"""Lines that were read and not yet taken, before no more are read."""


class PlainPage:
    """Standard output as a `Page` of the chat, in plain text without colours."""

    @property
    def width(self) -> int:
        """The terminal's width."""
        try:
            return max(20, os.get_terminal_size(sys.stdout.fileno()).columns)
        except (OSError, ValueError):
            return WIDTH

    def write(self, lines: str) -> None:
        """Print lines at once."""
        sys.stdout.write(f"{plain(lines)}\n")
        sys.stdout.flush()


def as_written(block: str, _width: int) -> str:
    """A Markdown block unrendered."""
    return clean(block).strip("\n")


class Lines:
    """Asynchronous line reader for a terminal or pipe, without a blocking thread. Reading pauses while many lines
    are queued, as a pipe may be endless."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._begun = b""
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._is_full = self._over = False

    def open(self) -> None:
        """Start or resume reading."""
        self._is_full = False
        asyncio.get_running_loop().add_reader(self._handle, self._read)

    def close(self) -> None:
        """Stop reading; a waiting `next` returns None."""
        self._over = True
        asyncio.get_running_loop().remove_reader(self._handle)
        self._lines.put_nowait(None)

    async def next(self) -> str | None:
        """The next line; None at the end."""
        if self._is_full and not self._over and self._lines.qsize() < MOST_WAITING:
            self.open()
        return await self._lines.get()

    def _read(self) -> None:
        piece = os.read(self._handle, 65536)
        *whole, self._begun = (self._begun + piece).split(b"\n")
        for line in whole:
            self._lines.put_nowait(line.decode("utf-8", "replace"))
        if not piece:
            if self._begun:
                self._lines.put_nowait(self._begun.decode("utf-8", "replace"))
            self.close()
        elif self._lines.qsize() >= MOST_WAITING:
            self._is_full = True
            asyncio.get_running_loop().remove_reader(self._handle)


class LineMode:
    """The terminal chat in line mode: handles the next input line when the run has ended or asks something."""

    def __init__(self, chat: Chat, page: PlainPage, lines: Lines) -> None:
        self._chat = chat
        self._page = page
        self._lines = lines
        self._moved = asyncio.Event()
        self._shown = ""

    async def run(self) -> None:
        """Run until the input ends or the person leaves; Ctrl-C stops the run, or the chat if none is active."""
        loop = asyncio.get_running_loop()
        self._chat.changed = self._moved.set
        self._lines.open()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            await self._rest()
            while not self._chat.over and (line := await self._lines.next()) is not None:
                await self._chat.line(line)
                await self._rest()
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            self._lines.close()

    async def _rest(self) -> None:
        """Wait until no run is active, or a new question is open."""
        shown = self._chat.transcript
        while (shown.running or shown.waiting) and not self._chat.over:
            asked = self._chat.question
            if asked is not None and asked.question != self._shown:
                self._shown = asked.question
                self._page.write("\n" + question_lines(asked, len(shown.questions) - 1, self._page.width))
                return
            self._moved.clear()
            await self._moved.wait()

    def _interrupt(self) -> None:
        if self._chat.can_halt:
            self._chat.halt()
        else:
            self._chat.over = True
            self._moved.set()
            self._lines.close()


RUN_FULL = "hermes_agent.cli.chat.full:run_full"


def run(invocation: Invocation) -> int:
    """Run the chat until the person leaves or the process is terminated (as when its terminal closes). Returns the
    exit code. Raises `HermesError` if there is no model, home or session."""
    try:
        return asyncio.run(_run(invocation))
    except asyncio.CancelledError:
        return Exit.STOPPED


async def _run(invocation: Invocation) -> int:
    home = find_home(invocation.profile).ensure()
    here = sys.stdin.isatty()
    options = Options(
        model=invocation.model,
        tape=recording_of(invocation),
        titles=here,
        reviews=here,
        strict_input=invocation.strict_input,
        allow=invocation.allowed,
    )
    async with open_system(home, options) as runtime:
        chatting = asyncio.current_task()
        assert chatting is not None
        with asked_to_end(chatting.cancel):
            if can_redraw(environment()):
                await late(RUN_FULL)(runtime, invocation)
            else:
                await run_plain(runtime, invocation)
    return Exit.OK


def can_redraw(variables: Mapping[str, str]) -> bool:
    """Whether input and output are a terminal with cursor control."""
    return sys.stdin.isatty() and sys.stdout.isatty() and has_controls(variables)


async def run_plain(runtime: System, invocation: Invocation) -> None:
    """Run the chat in line mode."""
    page = PlainPage()
    chat = await open_chat(runtime, invocation, page, as_written)
    try:
        await chat.begin()
        await LineMode(chat, page, Lines(sys.stdin.fileno())).run()
    finally:
        chat.close()
    page.write(chat.farewell())
