"""Main process of `hermes gateway run`: serves gateway, API and webhooks, handles signals, and reports its status."""

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
    """Client for systemd's notification socket (sd_notify); does nothing if there is no supervisor."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        address = variables.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        limit = variables.get("WATCHDOG_USEC", "")
        meant = variables.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        self.seconds = int(limit) / 1e6 if limit.isdecimal() and meant and self._address else 0.0
        """After so many seconds without a sign of life the service is started anew; 0: never."""

    def notify(self, *lines: str) -> None:
        """Send a state such as `READY=1`; failures are ignored."""
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as way:
            way.setblocking(False)
            way.sendto("\n".join(lines).encode(), self._address)

    async def reassure(self, gets_on: Callable[[], Awaitable[bool]]) -> None:
        """Send watchdog pings from the event loop while `gets_on` holds, until cancelled; a hung loop sends none."""
        while self.seconds:
            if await gets_on():
                self.notify("WATCHDOG=1")
            await asyncio.sleep(self.seconds / SHARE)


CHECK = "hermes_agent.api.serve:check"
SERVERS = "hermes_agent.api.serve:Servers"


class SideServers:
    """API and webhook servers inside a gateway process; their code is loaded when the settings enable them."""

    def __init__(self, runtime: System) -> None:
        self._runtime = runtime
        self._servers: Servers | None = None

    @property
    def url(self) -> str:
        """The API's URL; empty if it is off."""
        return self._servers.url if self._servers else ""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where the API and webhooks listen, as text."""
        return self._servers.addresses if self._servers else ()

    def check(self, settings: Settings, secret: Callable[[str], str]) -> None:
        """Raise `ConfigError` for invalid keys or routes."""
        check(settings, secret)

    async def follow(self, settings: Settings) -> None:
        """Apply settings. Raises `ConfigError`."""
        if self._servers is None and is_wanted(settings):
            self._servers = late(SERVERS)(self._runtime, announce)
        if self._servers is not None:
            await self._servers.follow(settings)

    async def close(self) -> None:
        """Close the servers."""
        if self._servers is not None:
            await self._servers.close()


def check(settings: Settings, secret: Callable[[str], str]) -> None:
    """Raise `ConfigError` for invalid keys or routes."""
    if is_wanted(settings):
        late(CHECK)(settings, secret)


def is_wanted(settings: Settings) -> bool:
    """Whether the API or webhooks are enabled."""
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
    """Requests to stop or restart (`again`) the gateway process; `hurry` skips the wait for active runs."""

    over: asyncio.Event
    again: bool = False
    hurried: bool = False
    hurry: Callable[[], None] = lambda: None

    def end(self) -> None:
        """Stop after active runs have finished; a second call stops without waiting."""
        if self.over.is_set():
            self.now()
        self.again = False
        self.over.set()

    def now(self) -> None:
        """Stop without waiting for active runs."""
        self.hurried = True
        ends_within(PATIENCE)
        self.hurry()
        self.again = False
        self.over.set()

    def restart(self) -> None:
        """Stop after active runs and restart."""
        self.again = not self.over.is_set() or self.again
        self.over.set()


@dataclass(slots=True, kw_only=True)
class Sign:
    """Signs of life of a gateway: writes its status to its status file, to the console, and to systemd."""

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
        """Write the status file; a write error does not stop the gateway."""
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
        """Signal handler: refresh the status in the background."""
        spawn(self.answer(), name="health")

    async def answer(self) -> None:
        """Check the health and write the status."""
        await self.stalled_for(LOOK_SECONDS)
        self.checked = SystemClock().now()
        self.write()

    async def stalled_for(self, patience: float) -> float:
        """Check the health. Returns for how many seconds something has been stalled."""
        found = await self.gateway.runtime.health.ailments(patience) if self.gateway is not None else []
        before, self.ailments = self.ailments, tuple(f"{each.text} {each.detail}".strip() for each in found)
        if bool(before) != bool(self.ailments):
            print_line(" ".join(self.ailments) or "All is well again.")
        if before != self.ailments:
            self.write()
        return max((each.stands for each in found), default=0.0)

    async def gets_on(self) -> bool:
        """Whether nothing has been stalled for too long."""
        limit = self.supervisor.seconds
        return await self.stalled_for(min(LOOK_SECONDS, limit / 10)) < STILL * limit

    def show(self, channels: Mapping[str, tuple[str, str]]) -> None:
        """Print channel states that changed."""
        for name, (state, ailment) in channels.items():
            words = f"{name}: {state}{f': {ailment}' if ailment else ''}"
            if state != "starting" and self.shown.get(name) != words:
                self.shown[name] = words
                print_line(words)

    def reload(self) -> None:
        """Reload the settings."""
        if self.gateway is not None:
            self.gateway.reloading.wake()

    def now(self, phase: Phase, *lines: str) -> None:
        """Enter a phase and publish it."""
        self.phase = phase
        self.supervisor.notify(*lines)
        self.write()


def serve_again(surface: Surface, program: str = sys.executable) -> bool:
    """Re-execute this program under the same pid; False if the system refuses. Signals before its handlers are
    installed are ignored."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (RESTART, RELOAD)}
    with suppress(OSError):
        become([program, *sys.orig_argv[1:]], env=surface.variables)
    for number, handler in before.items():
        signal.signal(number, handler)
    forget_state(surface.home)
    return False


async def serve(surface: Surface) -> bool:
    """Serve until stopped. Returns whether to restart."""
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
    """Print a line; output errors do not stop the gateway."""
    with suppress(OSError):
        announce(text)


def monotonic_usec() -> int:
    """Monotonic time in microseconds, which systemd requires with a reload."""
    return int(SystemClock().monotonic() * 1e6)
