"""Gateway server: supervises channel listeners, and runs ingress and delivery."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from hermes_agent.app.chats.settings import GatewaySettings
from hermes_agent.app.command_queue import CommandQueue
from hermes_agent.app.operations import serving
from hermes_agent.app.reloading import Reloading
from hermes_agent.app.settings import Settings
from hermes_agent.app.system import System
from hermes_agent.core.activity import activity
from hermes_agent.core.errors import ConfigError, HermesError, HomeError, LostLease, StoreError
from hermes_agent.core.events import Seen
from hermes_agent.gateway.access_control import AccessControl
from hermes_agent.gateway.channel import Channel, ChannelError, Heard, Kind, Needs, NotNow, TokenRefused, no_option
from hermes_agent.gateway.channel_runtime import ChannelRuntime, Channels, made
from hermes_agent.gateway.delivery import Delivery, Notices
from hermes_agent.gateway.ingress import Ingress
from hermes_agent.gateway.streaming import Streaming
from hermes_agent.host.http import Http
from hermes_agent.host.locks import LockFile, holder_of
from hermes_agent.host.paths import Home, locks_of_all_homes
from hermes_agent.host.tasks import spawn

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a channel that broke is tried again, doubling."""
TAKEN_PAUSE = 5.0
"""Seconds between two looks whether another process still listens with the same token."""
Kinds = Callable[[GatewaySettings], Mapping[str, Kind]]
"""The channels that are switched on. Raises `ConfigError`."""


class Gateway:
    """The gateway of one process: starts, supervises and stops its channels, and follows settings changes
    (`switched_on`). A failing channel does not affect others; `unmade` says why a channel could not start."""

    def __init__(
        self,
        runtime: System,
        access: AccessControl,
        channels: Channels,
        switched_on: Kinds,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.runtime = runtime
        self.settings = settings = runtime.settings.gateway
        self.access = access
        self.lines = channels.lines
        self.known: dict[str, ChannelRuntime] = {}
        workspace = workspace_of(settings, runtime.home)
        self.drafts = Streaming(runtime=runtime, wake=lambda: self.delivery.wake())
        self.notices = Notices(runtime, access.people, lambda: self.delivery.wake())
        self.delivery = Delivery(runtime, self.lines, self.drafts, self.notices)
        self.command_queue = CommandQueue(runtime, str(workspace), self.delivery.wake, access.people.model)
        self.ingress = Ingress(runtime, settings, access, self.command_queue, self.drafts, self._channel)
        self.ingress.removed = self.notices.removed
        self._kinds = channels.kinds
        self._changed = changed
        self._http = Http()
        self._ending = False
        self._hurried = False
        self._draining: asyncio.Timeout | None = None
        self._delivering: asyncio.Task[None] | None = None
        self._serving: dict[str, asyncio.Task[None]] = {}
        self.unmade: dict[str, str] = {}
        self._switched_on = switched_on
        self._asked: dict[str, dict[str, str]] = {}
        self.reloading = Reloading(runtime, [self], changed)

    async def start(self) -> None:
        """Start listening and delivering."""
        serving.follow_events(self.runtime, self._overhear, self.delivery.wake)
        self._delivering = spawn(self.delivery.run(), name="delivery")
        log.info("the gateway begins, with %s", ", ".join(sorted(self._kinds)) or "no channel")
        for kind in self._kinds.values():
            self._begin(kind)

    def _overhear(self, seen: Seen) -> None:
        self.drafts.overhear(seen)
        if seen.event.kind in SAYING:
            self.delivery.wake()

    def check(self, settings: Settings, secret: Callable[[str], str]) -> None:  # noqa: ARG002  as `Follower`
        """Raise `ConfigError` for an unknown channel."""
        self._switched_on(settings.gateway)

    async def follow(self, settings: Settings) -> None:
        """Apply settings: new access rules, and start, stop or restart channels that changed, stopped, or have other
        secrets."""
        kinds, workspace = self._switched_on(settings.gateway), workspace_of(settings.gateway, self.runtime.home)
        before, self.settings = self.settings, settings.gateway
        self._kinds.clear()
        self._kinds.update(kinds)
        self.access.follow(self.settings.channels, settings.privacy.hash_ids)
        self.ingress.settings = self.settings
        self.command_queue.workspace = str(workspace)
        serving.limit_runs(self.runtime, self.settings.max_runs)
        for name in [*self.known, *self.unmade]:
            same = name in kinds and options_of(before, name) == options_of(self.settings, name)
            if not same or name in self.unmade or self._serving[name].done() or self._has_other_secrets(name):
                await self._end(name)
        for kind in kinds.values():
            if kind.name not in self._serving:
                self._begin(kind)
        self._changed()

    async def stop(self) -> None:
        """Shut down: stop listening, wait a while for runs, deliver what is due. Idempotent."""
        if self._ending:
            return
        self._ending = True
        for task in self._serving.values():
            task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(0 if self._hurried else self.settings.drain_seconds) as self._draining:
                await serving.rest(self.runtime)
                await self.command_queue.drain()
                await self.delivery.idle()
        self._draining = None
        if self._delivering is not None:
            self._delivering.cancel()
            await asyncio.wait((self._delivering, *self._serving.values()))
        for line in self.known.values():
            await line.channel.close()
        await self._http.close()

    def hurry(self) -> None:
        """Skip the wait for runs during shutdown."""
        if self._draining is not None and not self._hurried:
            self._draining.reschedule(asyncio.get_running_loop().time())
        self._hurried = True

    def _begin(self, kind: Kind) -> None:
        line = self._line(kind)
        if line is not None:
            self._serving[kind.name] = spawn(self._serve(line), name=f"channel {kind.name}")

    async def _end(self, name: str) -> None:
        """Stop one channel."""
        self.unmade.pop(name, None)
        task, line = self._serving.pop(name, None), self.known.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))
        if line is not None:
            await line.channel.close()

    async def _serve(self, line: ChannelRuntime) -> None:
        """Supervise one channel until cancelled."""
        pause = FIRST_PAUSE
        while True:
            began = self.runtime.clock.monotonic()
            # Boundary: one job.
            try:
                wait = await self._listen(line)
            except TokenRefused as error:
                self._report(line, "stopped", str(error))
                return
            except (ChannelError, StoreError, LostLease) as error:
                wait = error.retry_after if isinstance(error, NotNow) else None
                self._report(line, "waiting", str(error))
            except Exception as error:
                wait = None
                log.exception("channel %s broke", line.kind.name)
                self._report(line, "waiting", f"{type(error).__name__}: {error}")
            if self.runtime.clock.monotonic() - began > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            await self.runtime.clock.sleep(wait or pause)
            pause = pause if wait else min(2 * pause, LONGEST_PAUSE)

    async def _listen(self, line: ChannelRuntime) -> float | None:
        """Listen while holding the token's lock. Returns seconds to wait if another process holds it."""
        mark = self._mark(line.kind)
        async with serving.lock(self.runtime, f"channel {line.kind.name} {mark}") as check:
            if check is None:
                self._report(line, "waiting", "Another process listens with the same token.")
                return TAKEN_PAUSE
            await self._listen_alone(line, mark, check)
        return None

    async def _listen_alone(self, line: ChannelRuntime, mark: str, check: Callable[[], None]) -> None:
        kind = line.kind

        async def hear(heard: Heard) -> str:
            self._report(line, "listening", "")
            check()
            return await self.ingress.hear(line, heard)

        try:
            with only_home(f"{kind.name}-{mark}", self.runtime.home.root):
                self.lines[kind.name] = line
                self.ingress.forget()
                self.command_queue.resume()  # Also those of a process that had the channel, and died.
                self.delivery.wake()
                # Asked first, so that nobody is told that it listens where the token is wrong or nobody answers.
                try:
                    await line.channel.check()
                    self._report(line, "listening", "")
                except ChannelError as error:
                    self._report(line, line.state, str(error))
                await line.channel.listen(hear)
        finally:
            if not self._ending:  # What is due at the end is still delivered.
                self.lines.pop(kind.name, None)

    def _line(self, kind: Kind) -> ChannelRuntime | None:
        """Build a channel's runtime; None if it cannot be built, which is reported."""
        given = options_of(self.settings, kind.name)
        needs = Needs(
            options=kind.with_defaults(given),
            secret=self._secret_for(kind.name),
            http=self._http,
            clock=self.runtime.clock,
            folder=self.runtime.home.root / "channels" / kind.name,
            kept=serving.facts_of(self.runtime),
            note=lambda text: self._note(kind.name, text),
        )
        # Boundary: one job.
        try:
            for unknown in sorted(given.keys() - kind.options.keys()):
                raise ConfigError(no_option(kind, unknown))
            line = made(kind, kind.make(needs), self.runtime.clock)
        except HermesError as error:
            log.error("channel %s cannot begin: %s", kind.name, error)  # noqa: TRY400  a sentence for the owner
            self.unmade[kind.name] = str(error)
            return None
        except Exception as error:
            log.exception("channel %s cannot begin", kind.name)
            self.unmade[kind.name] = f"{type(error).__name__}: {error}"
            return None
        self.known[kind.name] = line
        return line

    def _channel(self, name: str) -> Channel | None:
        line = self.known.get(name)
        return line.channel if line is not None else None

    def _note(self, name: str, text: str) -> None:
        line = self.known.get(name)
        if line is not None and line.note != text:
            line.note = text
            log.info("channel %s: %s", name, text)
            self._changed()

    def _secret_for(self, channel: str) -> Callable[[str], str]:
        """Secret lookup for one channel that remembers the values given."""
        asked = self._asked[channel] = {}

        def get(name: str) -> str:
            asked[name] = self.runtime.secrets.get(name)
            return asked[name]

        return get

    def _has_other_secrets(self, channel: str) -> bool:
        """Whether a secret that the channel uses has changed."""
        given = self._asked.get(channel, {})
        return any(self.runtime.secrets.get(name) != value for name, value in given.items())

    def _mark(self, kind: Kind) -> str:
        token, given = self.runtime.secrets.get(kind.secrets[0]), options_of(self.settings, kind.name)
        names = "\n".join((token, *(given.get(name, "") for name in kind.account)))
        return hashlib.sha256(names.encode()).hexdigest()[:16]

    def _report(self, line: ChannelRuntime, state: str, ailment: str) -> None:
        if (line.state, line.ailment) != (state, ailment):
            line.state, line.ailment, line.since = state, ailment, self.runtime.clock.now()
            log.log(
                logging.WARNING if ailment else logging.INFO,
                "channel %s: %s",
                line.kind.name,
                f"{state}: {ailment}" if ailment else state,
            )
            self._changed()


@contextmanager
def only_home(token: str, root: Path) -> Iterator[None]:
    """Context manager: lock a token among this person's homes on this machine. Raises `NotNow`."""
    activity.set(replace(activity.get(), name=f"the home {root}"))
    with ExitStack() as held:
        try:
            lock = held.enter_context(closing(LockFile(locks_of_all_homes() / token)))
            other = "" if lock.try_lock() else str(holder_of(lock.path) or "one that is ending")
        except HomeError as error:  # A disk of another machine may have no locks.
            log.warning("whether another home uses the same token is not seen: %s", error)
            other = ""
        if other:
            words = f"Another home on this machine listens with the same token: {other}."
            raise NotNow(f"{words} Give each home one of its own.", retry_after=TAKEN_PAUSE)
        yield


def options_of(settings: GatewaySettings, channel: str) -> Mapping[str, str]:
    """A channel's own options."""
    return settings.channels[channel].options if channel in settings.channels else {}


def workspace_of(settings: GatewaySettings, home: Home) -> Path:
    """The sessions' working folder; created if missing. Raises `ConfigError`."""
    workspace = Path(settings.workspace) if settings.workspace else home.root / "workspace"
    try:
        workspace.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"The folder {workspace} cannot be made ({error.strerror}): see `gateway.workspace`."
        ) from error
    return workspace


SAYING = frozenset({"run_ended", "asked", "answered", "notice"})
"""Events in whose commits something may have been put into the outbox."""
