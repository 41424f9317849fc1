"""The process of `hermes gateway run`: a gateway, the API and webhooks beside it, until somebody asks for the end."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hermes_agent.app.operations.serving import store_notice
from hermes_agent.app.system import served
from hermes_agent.cli.gateway.side_servers import SideServers, check
from hermes_agent.cli.output import announce
from hermes_agent.cli.recording_option import recording_of
from hermes_agent.cli.surface import Surface
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HomeError
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.gateway.state import Phase, forget_state, state_of, write_state
from hermes_agent.host.loops import PATIENCE, ends_within, heeding
from hermes_agent.host.paths import Home
from hermes_agent.host.process import become
from hermes_agent.host.systemd import Supervisor
from hermes_agent.host.tasks import spawn

if TYPE_CHECKING:
    from hermes_agent.gateway.server import Gateway

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
