"""Starts the chat: opens the system, chooses the full-screen or line mode, and runs until the person leaves."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping

from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.system import System
from hermes_agent.cli.chat.chat import open_chat
from hermes_agent.cli.chat.plain import LineMode, Lines, PlainPage, as_written
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.options import Invocation, recording_of
from hermes_agent.host.late import late
from hermes_agent.host.loops import asked_to_end
from hermes_agent.host.paths import environment, find_home

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
    return sys.stdin.isatty() and sys.stdout.isatty() and variables.get("TERM", "dumb") not in ("dumb", "unknown", "")


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
