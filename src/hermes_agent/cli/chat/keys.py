"""The keys of the chat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from string import ascii_lowercase, digits

from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from hermes_agent.cli.chat.chat import Chat
from hermes_agent.cli.chat.panel import Panel
from hermes_agent.cli.chat.questions import keys_of
from hermes_agent.core.events import Asked
from hermes_agent.host.tasks import spawn

TOO_SOON = 0.6
"""Seconds in which a key does not answer a question that just appeared: it was meant for the sentence being typed."""
ALONE = 0.5
"""Seconds after which a key that nothing followed is an answer: `a` may begin a sentence too."""
LEAVE_HINT = "Ctrl-C again leaves"


class Keyboard:
    """What the keys do. `send` takes a line that was typed."""

    def __init__(self, chat: Chat, panel: Panel, send: Callable[[str], None]) -> None:
        self._chat = chat
        self._panel = panel
        self._send = send
        self._armed = False
        panel.buffer.on_text_changed += lambda _: self._disarm()

    def bindings(self) -> KeyBindings:
        """All of them."""
        keys = KeyBindings()
        keys.add("enter")(self._enter)
        keys.add("c-j")(new_line)
        keys.add("escape", "enter")(new_line)
        keys.add("tab")(self._complete)
        keys.add("s-tab")(lambda event: event.current_buffer.complete_previous())
        keys.add("c-c")(self._interrupt)
        keys.add(Keys.SIGINT)(self._interrupt)
        keys.add("c-d", filter=Condition(lambda: not self._panel.buffer.text))(lambda event: event.app.exit())
        keys.add("c-t")(self._toggle_thoughts)
        keys.add("c-l")(lambda event: event.app.renderer.clear())
        keys.add("c-z")(lambda event: event.app.suspend_to_background())
        for key in (*digits, *ascii_lowercase):
            keys.add(key, filter=self._chooses(key))(self._answer)
        return keys

    def _enter(self, _: KeyPressEvent) -> None:
        buffer = self._panel.buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
            if not buffer.text.startswith("/"):
                return
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
            return
        text = buffer.text
        if self._chat.question is None:
            buffer.append_to_history()
        buffer.reset()
        self._disarm()
        if text.strip():
            self._send(text)

    def _complete(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None:
            buffer.complete_next()
        else:
            buffer.start_completion(select_first=True)

    def _interrupt(self, event: KeyPressEvent) -> None:
        """Stop the run; else clear the input; else, the second time, leave."""
        shown = self._chat.transcript
        if (shown.running and not shown.stopping) or (shown.waiting and not self._armed):
            self._chat.halt()
        elif self._panel.buffer.text:
            self._panel.buffer.reset()
        elif self._armed:
            event.app.exit()
            return
        self._armed = True
        self._panel.hint = LEAVE_HINT
        event.app.invalidate()

    def _disarm(self) -> None:
        self._armed = False
        self._panel.hint = ""

    def _toggle_thoughts(self, _: KeyPressEvent) -> None:
        self._chat.toggle_thoughts()
        self._chat.changed()

    def _choice(self, key: str) -> str | None:
        """The decision that a key may make."""
        asked = self._chat.question
        if asked is None or asked.purpose != "approval" or self._panel.buffer.text:
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
            self._panel.buffer.reset()
            await self._chat.answer(keys_of(asked)[key])


def new_line(event: KeyPressEvent) -> None:
    """Go on in another line of the same message."""
    event.current_buffer.insert_text("\n")
