"""How a gateway is, in a file of the home, for whoever asks from outside."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.line import Line
from hermes_agent.host.files import read_small, write_private
from hermes_agent.host.paths import Home


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelState:
    """One channel: `starting`, `listening`, `waiting` or `stopped`, since when (seconds since 1970), and what is
    wrong."""

    state: str
    since: float
    ailment: str = ""
    heard: int = 0


class GatewayState(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway: its process, since when it runs, its channels by name."""

    pid: int
    started: float
    channels: dict[str, ChannelState]


def state_file(home: Home) -> Path:
    """Where a gateway of this home writes how it is."""
    return home.root / "run" / "gateway.json"


def write_state(home: Home, started: float, lines: Mapping[str, Line]) -> None:
    """Write how this process's gateway is. Raises `HomeError`."""
    channels = {
        name: ChannelState(state=line.state, since=line.since, ailment=line.ailment, heard=line.heard)
        for name, line in lines.items()
    }
    path = state_file(home)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, msgspec.json.encode(GatewayState(pid=os.getpid(), started=started, channels=channels)))


def forget_state(home: Home) -> None:
    """This process's gateway has ended."""
    state_file(home).unlink(missing_ok=True)


def read_state(home: Home) -> GatewayState | None:
    """The gateway that runs on this home; None where none does, also where one died without a word."""
    content = read_small(state_file(home))
    if content is None:
        return None
    try:
        state = msgspec.json.decode(content, type=GatewayState)
        os.kill(state.pid, 0)
    except (msgspec.DecodeError, ProcessLookupError):
        return None
    except PermissionError:
        pass  # It is there, and somebody else's.
    return state
