"""The process of `hermes gateway run`: a gateway, the API and webhooks beside it, until somebody asks for the end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hermes_agent.app.operations.serving import store_notice
from hermes_agent.app.settings import Settings
from hermes_agent.app.system import System, served
from hermes_agent.cli.options import recording_of
from hermes_agent.cli.output import announce
from hermes_agent.cli.surface import Surface
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HomeError
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.gateway.state import Phase, forget_state, state_of, write_state
from hermes_agent.host.late import late
from hermes_agent.host.loops import PATIENCE, ends_within, heeding
from hermes_agent.host.paths import Home
from hermes_agent.host.process import become
from hermes_agent.host.tasks import spawn

if TYPE_CHECKING:
    from hermes_agent.api.serve import Servers
    from hermes_agent.gateway.server import Gateway

SHARE = 3
"""Signs of life in the time after which systemd takes the service for hung."""


class Supervisor:
    """Whoever started this process and watches it; where nobody does, everything here does nothing."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        address = variables.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        limit = variables.get("WATCHDOG_USEC", "")
        meant = variables.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        self.seconds = int(limit) / 1e6 if limit.isdecimal() and meant and self._address else 0.0
        """After so many seconds without a sign of life the service is started anew; 0: never."""

    def notify(self, *lines: str) -> None:
        """Say something, e.g. `READY=1`; one that cannot be reached is no error."""
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as way:
            way.setblocking(False)
            way.sendto("\n".join(lines).encode(), self._address)

    async def reassure(self, gets_on: Callable[[], Awaitable[bool]]) -> None:
        """Give signs of life from this loop until cancelled, as long as it `gets_on`: one that hangs gives none."""
        while self.seconds:
            if await gets_on():
                self.notify("WATCHDOG=1")
            await asyncio.sleep(self.seconds / SHARE)


CHECK = "hermes_agent.api.serve:check"
SERVERS = "hermes_agent.api.serve:Servers"


class SideServers:
    """Goes by the settings of a gateway whose system is `runtime`."""

    def __init__(self, runtime: System) -> None:
        self._runtime = runtime
        self._servers: Servers | None = None

    @property
    def url(self) -> str:
        """Where the API is; empty: nowhere."""
        return self._servers.url if self._servers else ""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where the API and the webhooks are, in words."""
        return self._servers.addresses if self._servers else ()

    def check(self, settings: Settings, secret: Callable[[str], str]) -> None:
        """Raise `ConfigError` for keys and routes that cannot be."""
        check(settings, secret)

    async def follow(self, settings: Settings) -> None:
        """Listen where the settings say. Raises `ConfigError`."""
        if self._servers is None and is_wanted(settings):
            self._servers = late(SERVERS)(self._runtime, announce)
        if self._servers is not None:
            await self._servers.follow(settings)

    async def close(self) -> None:
        """Listen no more."""
        if self._servers is not None:
            await self._servers.close()


def check(settings: Settings, secret: Callable[[str], str]) -> None:
    """Raise `ConfigError` for keys and routes that cannot be."""
    if is_wanted(settings):
        late(CHECK)(settings, secret)


def is_wanted(settings: Settings) -> bool:
    """Whether anything is to listen."""
    return settings.api.enabled or settings.webhooks.enabled


RESTART, RELOAD, ASK = signal.SIGUSR1, signal.SIGUSR2, signal.SIGURG
"""The signals by which `hermes gateway` has a running one begin again, read its settings again, and say how it is."""
LOOK_SECONDS = 2.0
"""How long it waits for threads and the database before it answers."""
STILL = 0.75
"""The part of systemd's patience for which something may stand still before there are no signs of life any more."""
NO_CHANNEL = "`hermes gateway setup` shows how to enable one"


@dataclass(slots=True, kw_only=True)
class StopRequests:
    """What somebody asked of this process: to end, or to begin `again`; `hurry` waits no longer for what runs."""

    over: asyncio.Event
    again: bool = False
    hurried: bool = False
    hurry: Callable[[], None] = lambda: None

    def end(self) -> None:
        """End, when what runs has finished; said once more, without waiting for it."""
        if self.over.is_set():
            self.now()
        self.again = False
        self.over.set()

    def now(self) -> None:
        """End without waiting for what runs."""
        self.hurried = True
        ends_within(PATIENCE)
        self.hurry()
        self.again = False
        self.over.set()

    def restart(self) -> None:
        """The same, and begin again."""
        self.again = not self.over.is_set() or self.again
        self.over.set()


@dataclass(slots=True, kw_only=True)
class Sign:
    """What is told outside of this process's gateway: in its file, and to systemd where that watches."""

    home: Home
    started: float
    supervisor: Supervisor
    phase: Phase = Phase.STARTING
    gateway: Gateway | None = None
    beside: SideServers | None = None
    shown: dict[str, str] = field(default_factory=dict)
    ailments: tuple[str, ...] = ()
    checked: float = 0.0

    def write(self) -> None:
        """Write how it is; a home that cannot be written does not end a gateway."""
        if (gateway := self.gateway) is None:
            lines, unmade, notice = {}, {}, ""
        else:
            lines, unmade, notice = gateway.known, gateway.unmade, gateway.reloading.problems
        if self.phase is Phase.READY:
            self.show({name: (line.state, line.ailment) for name, line in lines.items()})
            self.show({name: ("stopped", why) for name, why in unmade.items()})
        with suppress(HomeError, OSError):
            state = state_of(self.started, lines, unmade, self.phase)
            beside = self.beside.addresses if self.beside else ()
            state = replace(state, config=notice, beside=beside, ailments=self.ailments, checked=self.checked)
            write_state(self.home, state)

    def asked(self) -> None:
        """Somebody wants to know how it is."""
        spawn(self.answer(), name="health")

    async def answer(self) -> None:
        """Say how it is to whoever asked."""
        await self.stalled_for(LOOK_SECONDS)
        self.checked = SystemClock().now()
        self.write()

    async def stalled_for(self, patience: float) -> float:
        """See what does not get on; for how many seconds it has stood still."""
        found = await self.gateway.runtime.health.ailments(patience) if self.gateway is not None else []
        before, self.ailments = self.ailments, tuple(f"{each.text} {each.detail}".strip() for each in found)
        if bool(before) != bool(self.ailments):
            print_line(" ".join(self.ailments) or "All is well again.")
        if before != self.ailments:
            self.write()
        return max((each.stands for each in found), default=0.0)

    async def gets_on(self) -> bool:
        """Whether nothing has stood still for too long."""
        limit = self.supervisor.seconds
        return await self.stalled_for(min(LOOK_SECONDS, limit / 10)) < STILL * limit

    def show(self, channels: Mapping[str, tuple[str, str]]) -> None:
        """Say how a channel is now, where it is otherwise than was said."""
        for name, (state, ailment) in channels.items():
            words = f"{name}: {state}{f': {ailment}' if ailment else ''}"
            if state != "starting" and self.shown.get(name) != words:
                self.shown[name] = words
                print_line(words)

    def reload(self) -> None:
        """Read the settings again."""
        if self.gateway is not None:
            self.gateway.reloading.wake()

    def now(self, phase: Phase, *lines: str) -> None:
        """It is in that phase from now on."""
        self.phase = phase
        self.supervisor.notify(*lines)
        self.write()


def serve_again(surface: Surface, program: str = sys.executable) -> bool:
    """Be this program from its beginning, under the same process number; False where the system does not let us. What
    it is asked before it heeds signals again is lost, and ends nothing."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (RESTART, RELOAD)}
    with suppress(OSError):
        become([program, *sys.orig_argv[1:]], env=surface.variables)
    for number, handler in before.items():
        signal.signal(number, handler)
    forget_state(surface.home)
    return False


async def serve(surface: Surface) -> bool:
    """Serve until told to end; whether it is to begin again."""
    home, settings = surface.home.ensure(), surface.loaded.value
    sign = Sign(home=home, started=SystemClock().now(), supervisor=Supervisor(surface.variables))
    told = StopRequests(over=asyncio.Event())
    async with AsyncExitStack() as closing:
        closing.enter_context(
            heeding({signal.SIGINT: told.end, signal.SIGTERM: told.end, RESTART: told.restart, RELOAD: sign.reload})
        )
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            closing.enter_context(heeding({signal.SIGHUP: told.now}))
        closing.callback(lambda: None if told.again else forget_state(home))  # Who waits for it sees it go on.
        sign.write()
        closing.enter_context(heeding({ASK: sign.asked}))
        alive = spawn(sign.supervisor.reassure(sign.gets_on), name="signs of life")
        closing.callback(alive.cancel)
        check(settings, surface.secrets.get)
        tape = recording_of(surface.invocation)
        opening = open_gateway(home, changed=sign.write, restart=told.restart, tape=tape)
        sign.gateway = await closing.enter_async_context(opening)
        runtime, told.hurry = sign.gateway.runtime, sign.gateway.hurry
        beside = sign.beside = SideServers(runtime)
        closing.push_async_callback(beside.close)
        sign.gateway.reloading.followers.append(beside)
        await beside.follow(runtime.settings)
        if runtime.hooks is not None:
            await runtime.hooks.fire("gateway:start", {"url": beside.url})
        names = ", ".join(sorted((*sign.gateway.known, *sign.gateway.unmade))) or f"no channel: {NO_CHANNEL}"
        print_line(f"The gateway runs, with {names}.")
        await sign.answer()
        if notice := store_notice(runtime):
            print_line(notice)
        sign.now(Phase.READY, "READY=1", "STATUS=The gateway listens.")
        await served(runtime.hermes, told.over.wait())
        sign.now(Phase.ENDING, "RELOADING=1" if told.again else "STOPPING=1", f"MONOTONIC_USEC={monotonic_usec()}")
        drain = runtime.settings.gateway.drain_seconds
        how = "Beginning again" if told.again else "Ending"
        if not told.again and not told.hurried:
            ends_within(drain + PATIENCE)
        print_line(
            f"{how}: runs have {drain:g} s to finish. Ctrl-C stops at once; unfinished runs resume at the next start."
        )
    return told.again


def print_line(text: str) -> None:
    """A line for whoever looks; where nobody reads it any more, or its disk is full, the gateway goes on."""
    with suppress(OSError):
        announce(text)


def monotonic_usec() -> int:
    """The machine's monotonic clock, which systemd wants to be told with a reload."""
    return int(SystemClock().monotonic() * 1e6)
