"""Terminal screen of the full-screen chat: appends finished lines to the scrollback above the application."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output

from hermes_agent.cli.chat.text import plain
from hermes_agent.core.clock import Clock
from hermes_agent.host.tasks import spawn

MOST_COPIED = 100_000
"""Characters in base64 that terminals take for the clipboard."""
REFRESH_SECONDS = 0.125
"""Seconds between two drawings of what the session's events changed."""
TICK = 0.125
"""Seconds between two frames of a spinner."""
# A terminal that knows them shows what is between them at once; others ignore them.
BEGIN_FRAME, END_FRAME = "\x1b[?2026h", "\x1b[?2026l"


class Screen:
    """The terminal as a `Page` of the full-screen chat, with the prompt_toolkit application at its bottom.

    `refresh` draws new lines and the unfinished part together, so that nothing flickers and the scrollback is not
    redrawn.
    """

    def __init__(self, *, output: Output, clock: Clock, colours: bool = True) -> None:
        self.output = output
        self._clock = clock
        self._colours = colours
        self._new: list[str] = []
        self._busy = asyncio.Event()
        self.app: Application[None] | None = None
        self._later: asyncio.TimerHandle | None = None
        self._drawn = 0.0

    @property
    def width(self) -> int:
        """Cells per line; the last column stays empty, as some terminals wrap there."""
        return max(10, self.output.get_size().columns - 1)

    @property
    def height(self) -> int:
        """Lines of the terminal."""
        return self.output.get_size().rows

    def write(self, lines: str) -> None:
        """Queue lines for the scrollback; shown at the next `refresh`."""
        self._new.append(lines if self._colours else plain(lines))

    def refresh(self) -> None:
        """Redraw the screen, at most eight times a second: what is typed is drawn apart from this."""
        app = self.app
        if app is None or not app.is_running:
            self._flush()
        elif self._later is None:
            loop = asyncio.get_running_loop()
            wait = self._drawn + REFRESH_SECONDS - loop.time()
            if wait > 0:
                self._later = loop.call_later(wait, self._draw)
            else:
                self._draw()

    def _draw(self) -> None:
        self._later, self._drawn = None, asyncio.get_running_loop().time()
        app = self.app
        if app is None or not app.is_running:
            self._flush()
        elif self._new:
            with set_app(app):
                self.output.write_raw(BEGIN_FRAME)
                app.renderer.erase()
                self._flush()
                app.render_counter += 1  # Else what was drawn last is drawn again: the old status line.
                app.renderer.render(app, app.layout)
                self.output.write_raw(END_FRAME)
                self.output.flush()
        else:
            app.invalidate()

    def _flush(self) -> None:
        lines, self._new = self._new, []
        if lines:
            self.output.write_raw("".join(f"{line}\n" for line in lines))
            self.output.flush()

    def copy(self, text: str) -> bool:
        """Ask the terminal to put the text into the clipboard (OSC 52). False if it is too long for that."""
        if len(encoded := base64.b64encode(text.encode()).decode()) > MOST_COPIED:
            return False
        self.output.write_raw(f"\x1b]52;c;{encoded}\x07")
        self.output.flush()
        return True

    def say(self, line: str) -> None:
        """Print a line after the application has exited."""
        self.write(line)
        self._flush()

    async def run(self, app: Application[None], busy: Callable[[], bool]) -> None:
        """Run the application until it exits; spinners move while `busy`."""
        self.app = app
        self._flush()
        ticking = spawn(self._tick(busy), name="spinner")
        try:
            await app.run_async()
        finally:
            ticking.cancel()
            self._flush()

    def wake(self, *, busy: bool) -> None:
        """Start or pause the spinner."""
        if busy:
            self._busy.set()
        else:
            self._busy.clear()

    async def _tick(self, busy: Callable[[], bool]) -> None:
        while True:
            await self._busy.wait()
            await self._clock.sleep(TICK)
            self.refresh()
            if not busy():
                self._busy.clear()


class ChatApplication(Application[None]):
    """The application at the bottom of the screen, which a narrower terminal leaves no copy of."""

    reflows = True
    """Whether the terminal breaks lines anew when its width changes."""

    def _on_resize(self) -> None:
        drawn, columns = self.renderer.last_rendered_screen, self.output.get_size().columns
        if drawn is not None and self.reflows:
            cursor = drawn.get_cursor_position(self.layout.current_window)
            rows = (drawn.data_buffer[number] for number in range(cursor.y))
            widths = [1 + max((at for at, cell in row.items() if cell.char != " "), default=-1) for row in rows]
            if over := rows_over([*widths, cursor.x], columns):
                self.output.cursor_up(over)
        super()._on_resize()


def rows_over(widths: Sequence[int], columns: int) -> int:
    """How many rows more lines of these widths take on a terminal of so many columns."""
    return sum(max(0, each - 1) // columns for each in widths)


def reflows(variables: Mapping[str, str]) -> bool:
    """Whether the terminal breaks lines anew when its width changes, as nearly all do."""
    in_screen = variables.get("STY") and not variables.get("TMUX")
    return not (variables.get("XTERM_VERSION") or variables.get("TERM") == "linux" or in_screen)


def terminal(stream: TextIO, variables: Mapping[str, str]) -> Output:
    """The terminal output of a stream, without cursor position requests, whose answers would arrive as typed keys."""
    output = Vt100_Output.from_pty(stream, term=variables.get("TERM"))
    output.enable_cpr = False
    return output
