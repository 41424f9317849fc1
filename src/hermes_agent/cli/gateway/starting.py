"""Starts, stops and restarts a background gateway, and waits for the result."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from hermes_agent.cli.gateway.serving import ASK, RESTART
from hermes_agent.cli.output import remark
from hermes_agent.cli.surface import Surface
from hermes_agent.core.errors import HermesError
from hermes_agent.gateway.state import GatewayState, read_state, read_states
from hermes_agent.host.locks import locked
from hermes_agent.host.paths import PRIVATE_FILE, Home
from hermes_agent.host.process import Child, start_detached

T = TypeVar("T")
BEGIN_SECONDS = 60.0
"""The longest that a start is waited for."""
GLANCE = 0.1
MOMENT = 1.0
"""Seconds after which a platform has answered, and said for example that it does not know the token."""
ANSWER_SECONDS = 4.0
"""How long a gateway may take to say how it is."""
SPARE_SECONDS = 15.0
"""What an end may take beyond the time that runs get to finish."""
SHOWN = 20
"""Lines of its output that are shown of a gateway which could not begin."""


def output_file(home: Home) -> Path:
    """The background gateway's output file."""
    return home.logs / "gateway.out"


def command_of(surface: Surface) -> list[str]:
    """Command line of a gateway for this home."""
    profile = surface.invocation.profile
    return [sys.executable, "-m", "hermes_agent", *(["-p", profile] if profile else []), "gateway", "run"]


def start(surface: Surface, seconds: float = BEGIN_SECONDS) -> GatewayState:
    """Start a detached gateway and wait until its channels listen or report errors. Raises `HermesError` if one is
    already running, or with its last output if it fails to start."""
    home = surface.home.ensure()
    with locked(home.locks / "gateway-start.lock"):
        if (running := read_state(home)) is not None:
            raise HermesError(f"A gateway runs on this home already (process {running.pid}).")
        handle = os.open(output_file(home), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            child = start_detached(
                command_of(surface), cwd=str(home.root), env=surface.variables, stdin=None, out=handle
            )
        except OSError as error:
            raise HermesError(f"The gateway could not be started: {error}") from error
        finally:
            os.close(handle)
        remark(f"Starting process {child.identity.pid}; its channels have {seconds:g} s to connect.")
        return _begun(home, child, seconds)


def _begun(home: Home, child: Child, seconds: float) -> GatewayState:
    def settled() -> GatewayState | bool | None:
        found = next((state for state in read_states(home) if state.pid == child.identity.pid), None)
        if found is not None and found.settled:
            return found
        return None if child.is_alive else False

    match _awaited(settled, seconds):
        case GatewayState() as state:
            time.sleep(MOMENT)
            return _still(home, state.pid, seconds)
        case None:
            return _still(home, child.identity.pid, seconds)
        case _:
            raise HermesError(f"The gateway stopped at once (exit code {child.code}).\n{last_words(home)}".rstrip())


def _still(home: Home, pid: int, seconds: float) -> GatewayState:
    """State of a gateway that did not become ready in time."""
    state = next((state for state in read_states(home) if state.pid == pid), None)
    if state is None:
        raise HermesError(f"Process {pid} runs and has said nothing for {seconds:.0f} s: see {output_file(home)}.")
    return state


def stop(home: Home, drain: float) -> list[int]:
    """Stop the gateways of this home. Returns their pids. Raises `HermesError` if none runs, or one is still
    stopping after `drain` seconds and a margin."""
    states = running(home)
    for state in states:
        os.kill(state.pid, signal.SIGTERM)
    ended = _awaited(lambda: not read_states(home) or None, drain + SPARE_SECONDS)
    if not ended:
        left = ", ".join(str(state.pid) for state in read_states(home))
        raise HermesError(
            f"Process {left} is still stopping: running work may finish; `hermes gateway logs -f` shows it."
        )
    return [state.pid for state in states]


def running(home: Home) -> list[GatewayState]:
    """The running gateways of this home, newest first. Raises `HermesError` if there is none."""
    states = read_states(home)
    if not states:
        raise HermesError("No gateway runs on this home.")
    return states


def restart(home: Home, drain: float, seconds: float = BEGIN_SECONDS) -> GatewayState:
    """Restart the gateway of this home and return its new state. Raises `HermesError` on failure."""
    before = running(home)[0]
    os.kill(before.pid, RESTART)

    def again() -> GatewayState | bool | None:
        states = read_states(home)
        if not states:
            return False
        new = [state for state in states if state.pid == before.pid and state.started > before.started]
        return next((state for state in new if state.settled), None)

    found = _awaited(again, drain + SPARE_SECONDS + seconds)
    if not isinstance(found, GatewayState):
        raise HermesError(f"The gateway stopped and did not restart.\n{last_words(home)}".rstrip())
    return found


def asked(home: Home, seconds: float = ANSWER_SECONDS) -> list[GatewayState]:
    """Ask the gateways of this home for their current state; one that does not answer is marked."""
    before = {state.pid: state.checked for state in read_states(home) if state.checked}
    for pid in before:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, ASK)

    def silent(state: GatewayState) -> bool:
        return before.get(state.pid) == state.checked

    def answered() -> list[GatewayState] | None:
        states = read_states(home)
        return None if any(map(silent, states)) else states

    found = _awaited(answered, seconds)
    held = f"It has not answered for {seconds:g} s: its event loop is blocked, or the process was stopped."
    return found or [replace(each, ailments=(held,)) if silent(each) else each for each in read_states(home)]


def _awaited(look: Callable[[], T | None], seconds: float) -> T | None:
    """Poll `look` until it returns a result; None after that time."""
    until = time.monotonic() + seconds
    while (found := look()) is None and time.monotonic() < until:
        time.sleep(GLANCE)
    return found


def last_words(home: Home) -> str:
    """The last output lines of the background gateway."""
    try:
        text = output_file(home).read_text(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-SHOWN:])
