"""Status files of running gateways, which other processes read (`hermes gateway status`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HomeError
from hermes_agent.gateway.channel_runtime import ChannelRuntime
from hermes_agent.host.paths import Home, read_small, write_private
from hermes_agent.host.process_table import Identity, is_alive, row_of

MARK = "gateway-*.json"
NONE: Mapping[str, str] = {}


class Phase(StrEnum):
    """Lifecycle phase of a gateway: starting, at work, or draining."""

    STARTING = "starting"
    READY = "ready"
    ENDING = "ending"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelState:
    """Status of one channel in a gateway's status file: `starting`, `listening`, `waiting` or `stopped`, since when
    (seconds since 1970), what is wrong, and a remark for the owner."""

    state: str
    since: float
    ailment: str = ""
    note: str = ""


class GatewayState(msgspec.Struct, frozen=True, kw_only=True):
    """Status of a gateway process: pid (`born` as in `Identity.started`), start time, channels by name, settings
    problems (`config`, empty: none), other listeners (`beside`), and health problems with the time they were
    `checked`."""

    pid: int
    started: float
    channels: dict[str, ChannelState]
    born: int = 0
    phase: Phase = Phase.READY
    config: str = ""
    beside: tuple[str, ...] = ()
    ailments: tuple[str, ...] = ()
    checked: float = 0.0

    @property
    def settled(self) -> bool:
        """Whether startup is over: each channel has listened or reported an error."""
        channels = self.channels.values()
        return self.phase is Phase.READY and all(each.state != "starting" or each.ailment for each in channels)


def state_file(home: Home, pid: int) -> Path:
    """The status file of that gateway process."""
    return home.root / "run" / MARK.replace("*", str(pid))


def state_of(
    started: float, lines: Mapping[str, ChannelRuntime], unmade: Mapping[str, str] = NONE, phase: Phase = Phase.READY
) -> GatewayState:
    """The status of this process's gateway; `unmade`: channels that could not start, and why."""
    channels = {
        name: ChannelState(state=line.state, since=line.since, ailment=line.ailment, note=line.note)
        for name, line in lines.items()
    }
    channels |= {name: ChannelState(state="stopped", since=started, ailment=why) for name, why in unmade.items()}
    row = row_of(pid := os.getpid())
    return GatewayState(pid=pid, started=started, channels=channels, born=row.started if row else 0, phase=phase)


def write_state(home: Home, state: GatewayState) -> None:
    """Write this process's status file. Raises `HomeError`."""
    path = state_file(home, state.pid)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, msgspec.json.encode(state), durable=False)


def forget_state(home: Home) -> None:
    """Delete this process's status file."""
    state_file(home, os.getpid()).unlink(missing_ok=True)


def read_states(home: Home) -> list[GatewayState]:
    """Status of the running gateways of this home, newest first; removes files of dead ones."""
    found: list[GatewayState] = []
    for path in sorted((home.root / "run").glob(MARK)):
        with suppress(HomeError, msgspec.DecodeError):
            state = msgspec.json.decode(read_small(path) or b"", type=GatewayState)
            if is_alive(Identity(pid=state.pid, started=state.born)):
                found.append(state)
                continue
        with suppress(OSError):
            path.unlink()
    return sorted(found, key=lambda state: -state.started)


def read_state(home: Home) -> GatewayState | None:
    """Status of the newest running gateway of this home; None if none runs."""
    return next(iter(read_states(home)), None)
