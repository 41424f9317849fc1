"""Full-screen picker: a list that narrows as the person types."""

from __future__ import annotations

from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, VSplit, Window
from prompt_toolkit.output import Output, create_output

from hermes_agent.cli.picker_choices import SHOWN, Choice, Narrowed

HINT = "type to narrow, Enter takes, Esc leaves"


def run(title: str, state: Narrowed, *, keys: Any = None, output: Output | None = None) -> Choice | None:  # noqa: ANN401 - prompt_toolkit's own input
    """Show the list until a choice is made; None if cancelled. `keys` and `output` replace the terminal."""
    return application(title, state, keys, output).run()


def application(title: str, state: Narrowed, keys: Any, output: Output | None) -> Application[Choice | None]:  # noqa: ANN401 - see above
    """Build the screen: title, input line, list."""
    typed = Buffer(multiline=False, on_text_changed=lambda buffer: state.type(buffer.text))
    line = VSplit([Window(FormattedTextControl("> "), width=2), Window(BufferControl(typed), height=1)])
    screen = output if output is not None else create_output(always_prefer_tty=True)
    rows = Window(
        FormattedTextControl(lambda: state.rows(screen.get_size().columns - 1)), height=SHOWN + 1, wrap_lines=False
    )
    body = HSplit([Window(FormattedTextControl(f"{title}\n{HINT}"), height=2), line, rows])
    shown: Application[Choice | None] = Application(
        layout=Layout(body, focused_element=typed),
        key_bindings=bindings(state),
        input=keys,
        output=screen,
        erase_when_done=True,
    )
    shown.ttimeoutlen = 0.05  # so that Esc alone is heard at once
    return shown


def bindings(state: Narrowed) -> KeyBindings:
    """The key bindings."""
    keys = KeyBindings()
    for name, by in {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "pageup": -SHOWN, "pagedown": SHOWN}.items():
        keys.add(name)(lambda _event, by=by: state.move(by))

    @keys.add("enter")
    def _choose(event: KeyPressEvent) -> None:
        if state.chosen is not None:
            event.app.exit(result=state.chosen)

    @keys.add("escape", eager=True)
    @keys.add("c-c")
    @keys.add("c-d")
    def _leave(event: KeyPressEvent) -> None:
        event.app.exit(result=None)

    return keys
