"""Key bindings of the chat, and fast handling of pasted text."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from string import ascii_lowercase, digits
from typing import TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.key_binding.bindings import search
from prompt_toolkit.keys import Keys

from hermes_agent.cli.chat.attaching import clipboard_picture, pasted_files
from hermes_agent.cli.chat.chat import Chat
from hermes_agent.cli.chat.panel import Panel
from hermes_agent.cli.chat.text import YELLOW, clean
from hermes_agent.cli.picker_choices import SHOWN
from hermes_agent.core.answers import TOO_SOON, keys_of
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Asked
from hermes_agent.host.paths import environment
from hermes_agent.host.tasks import spawn

ALONE = 0.5
"""Seconds after which a key that nothing followed is an answer: `a` may begin a sentence too."""
LEAVE_SECONDS = 2.0
"""How long a second Ctrl-C leaves."""
LEAVE_HINT = "Ctrl-C again leaves"
MOVES = {"up": -1, "c-p": -1, "s-tab": -1, "down": 1, "c-n": 1, "pageup": -SHOWN, "pagedown": SHOWN}
"""Keys that move the mark of a picker, and by how much."""
LONE_ESCAPE = Keys.F24
"""Stands for the Escape key where nothing follows it; with a following key, terminals send it for Alt."""
ESCAPE_SECONDS = 0.1
"""Seconds after which nothing follows an Escape."""
BEGINS, ENDS = "\x1b[200~", "\x1b[201~"
PIECE = 65_536
LONG = 20_000
"""Characters from which a paste is no text to edit any more."""


class Keyboard:
    """Key bindings of the full-screen chat. `send` gets each typed line."""

    def __init__(self, chat: Chat, panel: Panel, send: Callable[[str], None]) -> None:
        self._chat = chat
        self._panel = panel
        self._send = send
        self._pastes = Pastes()
        self._armed = False
        self._forgets = asyncio.get_running_loop().call_later(0, lambda: None)
        panel.buffer.on_text_changed += lambda _: self._disarm()

    def bindings(self) -> KeyBindings:
        """All key bindings."""
        keys = KeyBindings()
        for key in (LONE_ESCAPE, "enter"):
            keys.add(key, filter=is_searching)(take_found)
        keys.add(LONE_ESCAPE, filter=~is_searching)(self._escape)
        keys.add("up", filter=~is_searching & Condition(self._may_take_back))(
            lambda _: spawn(self._chat.outgoing.take_back(), name="take back")
        )
        keys.add("enter", filter=~is_searching)(self._enter)
        keys.add(Keys.BracketedPaste)(self._paste)
        keys.add("c-j")(new_line)
        keys.add("escape", "enter")(new_line)
        keys.add("tab", filter=~is_searching)(lambda _: self._panel.picker.when_loaded(self._take))
        keys.add("c-c", filter=~is_searching)(self._interrupt)
        keys.add(Keys.SIGINT)(self._interrupt)
        keys.add("c-d", filter=~is_searching & Condition(lambda: not self._panel.buffer.text))(
            lambda event: event.app.exit()
        )
        keys.add("c-x", "c-e")(self._edit)
        keys.add("c-g", filter=~is_searching)(self._edit)
        keys.add("c-v")(self._paste_picture)
        picks = Condition(lambda: self._panel.picker.is_open)
        for key, by in MOVES.items():
            keys.add(key, filter=~is_searching & picks)(lambda _, by=by: self._panel.picker.move(by))
        keys.add("c-t")(lambda _: self._show(self._chat.toggle_thoughts))
        keys.add("c-o")(lambda _: self._show(self._chat.transcript.unfold))
        keys.add("c-l")(lambda event: event.app.renderer.clear())
        keys.add("c-z")(lambda event: event.app.suspend_to_background())
        for key in (*digits, *ascii_lowercase):
            keys.add(key, filter=~is_searching & self._chooses(key))(self._answer)
        return keys

    def _enter(self, _: KeyPressEvent) -> None:
        buffer = self._panel.buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
            return
        if not self._is_picked(buffer):
            return
        text = buffer.text
        if self._chat.question is None:
            buffer.append_to_history()
        self._panel.clear()
        self._disarm()
        if text.strip():
            self._send(self._pastes.whole(text))

    def _is_picked(self, buffer: Buffer) -> bool:
        """Whether the line may be sent: False where Enter opened the picker, or chose what goes on in the input."""
        picker = self._panel.picker
        if picker.opens(buffer.text):
            buffer.insert_text(" ")
            return False
        pick, before = picker.chosen, buffer.text
        return pick is None or not self._take() or buffer.text.rstrip() == before.rstrip() or pick.sends

    def _take(self) -> bool:
        """Put the marked choice into the input; False if there is none."""
        picker, buffer = self._panel.picker, self._panel.buffer
        if (pick := picker.chosen) is None:
            return False
        document = buffer.document
        written = document.text[: picker.start] + pick.line
        buffer.document = Document(written + document.text_after_cursor, len(written))
        self._panel.follow()
        return True

    def _edit(self, event: KeyPressEvent) -> None:
        """Write the input in the editor of the person, pastes included."""
        buffer = event.current_buffer
        buffer.text = self._pastes.whole(buffer.text)
        buffer.open_in_editor()

    def _paste_picture(self, _: KeyPressEvent) -> None:
        spawn(self._attach_picture(), name="picture from the clipboard")

    async def _attach_picture(self) -> None:
        folder = self._chat.chat_session.runtime.intake.folder
        try:
            self._panel.buffer.insert_text(await clipboard_picture(folder, environment()) + " ")
        except HermesError as error:
            self._chat.transcript.remark(str(error), YELLOW)
        self._chat.changed()

    def _escape(self, _: KeyPressEvent) -> None:
        """Escape: close the list, else stop the run."""
        if self._panel.picker.is_open:
            self._panel.picker.close()
        elif self._chat.can_halt:
            self._chat.halt()

    def _may_take_back(self) -> bool:
        return bool(self._chat.transcript.waiting) and not self._panel.buffer.text

    def give_back(self, text: str) -> None:
        """Put text before what is typed, to be edited."""
        buffer = self._panel.buffer
        buffer.text = "\n".join(filter(None, (text, buffer.text)))
        buffer.cursor_position = len(buffer.text)

    def _paste(self, event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(pasted_files(event.data) or self._pastes.shown(event.data))

    def _interrupt(self, event: KeyPressEvent) -> None:
        """Ctrl-C: stop the run; else clear the input; else, the second time, leave."""
        if self._chat.can_halt and not (self._armed and not self._chat.transcript.running):
            self._chat.halt()
        elif self._panel.buffer.text:
            self._panel.clear()
        elif self._armed:
            event.app.exit()
            return
        self._armed = True
        self._panel.hint = LEAVE_HINT
        event.app.invalidate()
        self._forgets.cancel()
        self._forgets = asyncio.get_running_loop().call_later(LEAVE_SECONDS, self._forget, event.app)

    def _forget(self, app: Application[None]) -> None:
        """Time out the first Ctrl-C."""
        self._disarm()
        app.invalidate()

    def _disarm(self) -> None:
        self._armed = False
        self._panel.hint = ""

    def _show(self, act: Callable[[], None]) -> None:
        act()
        self._chat.changed()

    def _choice(self, key: str) -> str | None:
        """The answer that a key alone gives to the open question; None if it gives none."""
        asked = self._chat.question
        if asked is None or self._panel.buffer.text:
            return None
        return keys_of(asked).get(key) if self._panel.seconds_shown() >= TOO_SOON else None

    def _chooses(self, key: str) -> Condition:
        return Condition(lambda: self._choice(key) is not None)

    def _answer(self, event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(event.data)
        spawn(self._decide(event.data, self._chat.question), name="answer")

    async def _decide(self, key: str, asked: Asked | None) -> None:
        await asyncio.sleep(ALONE)
        if asked is not None and self._chat.question is asked and self._panel.buffer.text == key:
            self._panel.clear()
            await self._chat.answer(keys_of(asked)[key])


def take_found(event: KeyPressEvent) -> None:
    """Put the found line into the input, to be gone on with."""
    search.accept_search.call(event)
    event.current_buffer.cursor_position = len(event.current_buffer.text)


def new_line(event: KeyPressEvent) -> None:
    """Insert a line break."""
    event.current_buffer.insert_text("\n")


class Typed(Vt100Input):
    """Terminal input that handles large pastes in linear time. The parser of prompt_toolkit searches the whole paste
    again with each piece, so 50 MB would take minutes."""

    def __init__(self, terminal: TextIO | None = None) -> None:
        super().__init__(terminal or sys.stdin)
        self._pressed: list[KeyPress] = []
        self._pasted: list[str] | None = None
        self.vt100_parser = Vt100Parser(lambda key: self._pressed.append(key))

    def read_keys(self) -> list[KeyPress]:
        """The keys pressed since the last call; a finished paste is one key."""
        self._take(self.stdin_reader.read(PIECE))
        return self._given()

    def flush_keys(self) -> list[KeyPress]:
        """As `read_keys`, with an incomplete escape sequence taken as keys; Escape alone is `LONE_ESCAPE`."""
        self.vt100_parser.flush()
        pressed = self._given()
        return [KeyPress(LONE_ESCAPE)] if [each.key for each in pressed] == [Keys.Escape] else pressed

    def _given(self) -> list[KeyPress]:
        pressed, self._pressed = self._pressed, []
        return pressed

    def _take(self, data: str) -> None:
        while data:
            if self._pasted is None:
                before, begun, data = data.partition(BEGINS)
                self.vt100_parser.feed(before)
                self._pasted = [] if begun else None
            else:
                last = self._pasted.pop() if self._pasted else ""  # The mark of the end may come in two pieces.
                found, ended, data = f"{last}{data}".partition(ENDS)
                self._pasted += [found[: -len(ENDS)], found[-len(ENDS) :]]
                if ended:
                    self._pressed.append(KeyPress(Keys.BracketedPaste, "".join(self._pasted)))
                    self._pasted = None


class Pastes:
    """Long pastes in the chat's input: a placeholder stands for each and is expanded when the line is sent."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    def shown(self, pasted: str) -> str:
        """The text to insert, without control characters: the paste itself or its placeholder."""
        text = clean(pasted)
        if len(text) < LONG:
            return text
        words = f"[pasted text {len(self._kept) + 1}: {len(text):,} characters, {text.count(chr(10)) + 1:,} lines]"
        self._kept[words] = text
        return words

    def whole(self, line: str) -> str:
        """The line with placeholders expanded."""
        for words, text in self._kept.items():
            line = line.replace(words, text)
        return line
