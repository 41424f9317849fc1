"""Layout of the full-screen chat below the scrollback: the unfinished part of the reply, the open question, the input
with its list and history, and the status line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindingsBase
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from hermes_agent.cli.chat.attaching import FileIndex
from hermes_agent.cli.chat.calls import FRAMES_PER_SECOND, SPINNER, running_line
from hermes_agent.cli.chat.chat import Chat
from hermes_agent.cli.chat.chat_session import usage
from hermes_agent.cli.chat.picker import Picker
from hermes_agent.cli.chat.questions import question_lines
from hermes_agent.cli.chat.screen import ChatApplication, Screen
from hermes_agent.cli.chat.text import CYAN, DIM, LINK, clean, elapsed, one_line, paint
from hermes_agent.cli.chat.transcript import Transcript
from hermes_agent.cli.picker_choices import SHOWN
from hermes_agent.core.clock import Clock
from hermes_agent.host.late import late
from hermes_agent.host.paths import PRIVATE_FILE

MOST_RENDERED = 20_000
"""Characters of an unfinished block that are still rendered with every frame; a longer one is shown as it is."""
MOST_CALLS = 8
MOST_WAITING = 3


class Live:
    """Renderer of what still changes in a chat (reply, thoughts, tool calls, queued messages) as coloured lines."""

    def __init__(self, transcript: Transcript, render: Callable[[str, int], str]) -> None:
        self._transcript = transcript
        self._render = render
        self._drawn: tuple[str, int, str] = ("", 0, "")

    def lines(self, now: float, width: int, height: int) -> list[str]:
        """At most `height` lines of at most `width` cells (except long lines of code); older text is dropped first."""
        shown = self._transcript
        below = [*self._thoughts(width), *self._calls(now, width), *self._waiting(width)]
        room = max(1, height - len(below))
        words = self._words(width)
        if len(words) > room:
            words = words[-room:]
        lines = words + below
        return ["", *lines][-height:] if lines and (shown.gap or not words) else lines

    def activity(self, now: float) -> str:
        """The current activity in a word or two."""
        shown = self._transcript
        if not shown.running:
            return "idle"
        if shown.stopping:
            return "stopping"
        if shown.questions:
            return "waits for you"
        mark = SPINNER[int(now * FRAMES_PER_SECOND) % len(SPINNER)]
        clock = elapsed(max(0.0, now - shown.began)).split(".")[0].removesuffix(" s") + " s"
        return f"{mark} {self._doing()} {clock}"

    def _doing(self) -> str:
        shown = self._transcript
        if shown.retrying:
            return "retrying"
        if shown.calls:
            names = list(dict.fromkeys(call.tool for call in shown.calls.values()))
            return names[0] if len(names) == 1 else f"{len(shown.calls)} calls"
        if shown.forming:
            return shown.forming
        return "writing" if shown.words.tail or shown.words.given else "thinking"

    def _words(self, width: int) -> list[str]:
        tail = self._transcript.words.tail
        if not tail.strip():
            return []
        if self._drawn[:2] != (tail, width):
            drawn = self._render(tail, width) if len(tail) < MOST_RENDERED else clean(tail[-MOST_RENDERED // 4 :])
            self._drawn = (tail, width, LINK.sub("", drawn))  # The library that draws the open part knows no links.
        return self._drawn[2].split("\n")

    def _thoughts(self, width: int) -> list[str]:
        thoughts = clean(self._transcript.thoughts[-2000:]).strip()
        if not thoughts:
            return []
        return [paint(f"∴ {one_line(line, width - 3)}", DIM) for line in thoughts.split("\n")[-2:] if line.strip()]

    def _calls(self, now: float, width: int) -> list[str]:
        calls = list(self._transcript.calls.values())
        lines = [running_line(call, now, width) for call in calls[:MOST_CALLS]]
        if len(calls) > MOST_CALLS:
            lines.append(paint(f"  … {len(calls) - MOST_CALLS} more", DIM))
        return lines

    def _waiting(self, width: int) -> list[str]:
        texts = list(self._transcript.waiting.values())
        lines = [f"{paint('>', CYAN)} {paint(one_line(text, max(8, width - 12)), DIM)}" for text in texts]
        if not self._transcript.running:
            return lines[-MOST_WAITING:]
        return [f"{line}{paint(' (queued)', DIM)}" for line in lines[-MOST_WAITING:]]


FRAME = 0.05
"""Seconds between two frames at least."""
INPUT_LINES = 10
CHOICES = "hermes_agent.cli.chat.choices:choices_of"
PICKER_LINES = Dimension(max=SHOWN + 1)
STYLE = Style.from_dict(
    {
        "prompt": "bold ansicyan",
        "status": "ansibrightblack",
    }
)


MOST_READ = 512 * 1024
"""Bytes from the file's end that are read."""


class ChatHistory(History):
    """Input history of the chat in a file, one JSON string per message, newest last.

    A message that begins with a space is not saved; if the file is unusable, the history is kept in memory.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """The saved messages, newest first."""
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - MOST_READ))
                lines = file.read().split(b"\n")
        except OSError:
            return
        for line in reversed(lines):
            with suppress(ValueError):
                said = json.loads(line)
                if isinstance(said, str):
                    yield said

    def store_string(self, string: str) -> None:
        """Append a message to the file."""
        with suppress(OSError):
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
            with os.fdopen(handle, "wb") as file:
                file.write(json.dumps(string).encode() + b"\n")

    def append_string(self, string: str) -> None:
        """Add a message, unless it begins with a space or repeats the last one."""
        if not string.startswith(" ") and string.strip() and self.get_strings()[-1:] != [string]:
            super().append_string(string)


class Panel:
    """Layout of the full-screen chat for prompt_toolkit: unfinished reply, question, input and status line."""

    def __init__(self, chat: Chat, screen: Screen, live: Live, history: ChatHistory, clock: Clock) -> None:
        self.buffer = Buffer(
            multiline=True,
            history=history,
            tempfile_suffix=".md",
        )
        files = FileIndex(lambda: chat.chat_session.folder)
        self.picker = Picker(
            lambda wanted: late(CHOICES)(chat.chat_session, files, wanted),
            lambda: chat.chat_session.skills,
            lambda: chat.changed(),
        )
        # An earlier line that is fetched opens no list, which would take the arrow keys.
        self.buffer.on_text_changed += lambda buffer: self.follow(opens=self._before.startswith(buffer.text))
        self.buffer.on_cursor_position_changed += lambda _: self.follow(opens=False)
        self.buffer.on_text_insert += lambda _: self.follow()
        self.hint = self._before = ""
        self._shown = ("", 0.0)
        self._chat = chat
        self._screen = screen
        self._live = live
        self._clock = clock

    def application(self, bindings: KeyBindingsBase, input_: Input, *, colours: bool) -> ChatApplication:
        """Build the application."""
        search = SearchToolbar(ignore_case=True)
        words = Window(
            BufferControl(self.buffer, search_buffer_control=search.control, preview_search=True),
            height=Dimension(min=1, max=INPUT_LINES),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=self._prompt,
        )
        is_open = Condition(lambda: bool(self._open_lines()))
        asked = Condition(lambda: self._chat.question is not None)
        picks = Condition(lambda: self.picker.is_open)
        body = HSplit(
            [
                ConditionalContainer(
                    Window(FormattedTextControl(self._open_part), dont_extend_height=True, wrap_lines=True), is_open
                ),
                ConditionalContainer(
                    Window(FormattedTextControl(self._question), dont_extend_height=True, wrap_lines=True), asked
                ),
                Window(height=1),
                words,
                search,
                Window(FormattedTextControl(self._status), height=1, style="class:status"),
                ConditionalContainer(
                    Window(FormattedTextControl(self._picks), height=PICKER_LINES, dont_extend_height=True), picks
                ),
                Window(),
            ]
        )
        return ChatApplication(
            layout=Layout(body, focused_element=words),
            key_bindings=bindings,
            style=STYLE,
            color_depth=None if colours else ColorDepth.DEPTH_1_BIT,
            min_redraw_interval=FRAME,
            erase_when_done=True,
            input=input_,
            output=self._screen.output,
        )

    def clear(self) -> None:
        """Empty the input, which closes its menus."""
        self.buffer.reset()
        self.picker.follow("")  # A reset tells nobody that the text changed.

    def follow(self, *, opens: bool = True) -> None:
        """Tell the picker what is before the cursor."""
        self._before = self.buffer.text
        self.picker.follow(self.buffer.document.text_before_cursor, opens=opens)

    def seconds_shown(self) -> float:
        """Seconds since the open question appeared."""
        asked = self._chat.question
        shown, since = self._shown
        return self._clock.monotonic() - since if asked is not None and asked.question == shown else 0.0

    def _open_part(self) -> ANSI:
        return ANSI("\n".join(self._open_lines()))

    def _open_lines(self) -> list[str]:
        # Question, input and status need their lines first.
        room = max(1, self._screen.height - 6 - (8 if self._chat.question is not None else 0))
        return self._live.lines(self._clock.monotonic(), self._screen.width, room)

    def _question(self) -> ANSI:
        asked = self._chat.question
        if asked is None:
            return ANSI("")
        if asked.question != self._shown[0]:
            self._shown = (asked.question, self._clock.monotonic())
        others = len(self._chat.transcript.questions) - 1
        return ANSI("\n" + question_lines(asked, others, self._screen.width, self._screen.height))

    def _picks(self) -> StyleAndTextTuples:
        return self.picker.rows(self._screen.width)

    def _prompt(self, line: int, wrapped: int) -> StyleAndTextTuples:
        return [("class:prompt", "> ")] if line == 0 and wrapped == 0 else [("", "  ")]

    def _status(self) -> AnyFormattedText:
        hint = "" if self._chat.busy else self.hint
        activity = hint or usage(self.buffer.text) or self._live.activity(self._clock.monotonic())
        return f" {self._chat.status.line(activity, self._screen.width - 1)}"
