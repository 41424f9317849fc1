"""Full-screen chat, for a terminal with cursor control."""

from __future__ import annotations

import asyncio
import sys

from prompt_toolkit.application import Application

from hermes_agent.app.system import System
from hermes_agent.cli.chat.chat import Chat, open_chat
from hermes_agent.cli.chat.chat_session import names
from hermes_agent.cli.chat.keys import ESCAPE_SECONDS, Keyboard, Typed
from hermes_agent.cli.chat.panel import ChatHistory, Live, Panel
from hermes_agent.cli.chat.pictures import drawing
from hermes_agent.cli.chat.screen import Screen, reflows, terminal
from hermes_agent.cli.options import Invocation
from hermes_agent.host.late import late
from hermes_agent.host.paths import environment
from hermes_agent.host.tasks import spawn


def render(block: str, width: int) -> str:
    """Render a Markdown block with colours; the renderer is imported at first use."""
    drawn: str = late("hermes_agent.cli.chat.markdown:render")(block, width)
    return drawn


async def run_full(runtime: System, invocation: Invocation) -> None:
    """Run the chat until the person leaves. Raises `HermesError` if the log can no longer be followed."""
    variables = environment()
    colours = not variables.get("NO_COLOR")
    screen = Screen(output=terminal(sys.stdout, variables), clock=runtime.clock, colours=colours)
    chat = await open_chat(runtime, invocation, screen, render)
    chat.transcript.draw = drawing(variables) if colours else None
    lines: asyncio.Queue[str] = asyncio.Queue()
    panel = Panel(chat, screen, Live(chat.transcript, render), ChatHistory(runtime.home.chat_history), runtime.clock)
    try:
        keyboard, typed = Keyboard(chat, panel, lines.put_nowait), Typed()
        app = panel.application(keyboard.bindings(), typed, colours=colours)
        app.ttimeoutlen, app.reflows = ESCAPE_SECONDS, reflows(variables)
        chat.outgoing.give_back, chat.own.copy = keyboard.give_back, screen.copy
        chat.changed = lambda: show(chat, screen, app)
        # What is typed while the greeting is written is for the input, Enter included.
        with typed.raw_mode():
            await chat.begin()
            spawn(prepare_menu(chat), name="chat: what a slash offers")
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(hand_on(chat, lines))
                await screen.run(app, lambda: chat.moves)
                sending.cancel()
    finally:
        chat.close()
    if farewell := chat.farewell():
        screen.say(f"\n{farewell}")


async def prepare_menu(chat: Chat) -> None:
    """Load what a slash offers, once the input is there."""
    await chat.chat_session.see_skills()
    await asyncio.to_thread(names)


async def hand_on(chat: Chat, lines: asyncio.Queue[str]) -> None:
    """Handle queued lines one after the other."""
    chat.changed()
    while True:
        await chat.line(await lines.get())


def show(chat: Chat, screen: Screen, app: Application[None]) -> None:
    """Redraw, and exit the application when the chat is over."""
    screen.wake(busy=chat.moves)
    screen.refresh()
    if chat.over and app.is_running and not app.is_done:
        app.exit()
