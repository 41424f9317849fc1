"""New settings without a restart: what changed in config.yaml is said once, and holds for what is heard next."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from hermes_agent.app.service.settings import GatewaySettings
from hermes_agent.app.settings import Settings
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channel import Kind
from hermes_agent.host.config import Loaded, load
from hermes_agent.host.late import late
from hermes_agent.host.paths import Home
from hermes_agent.host.schema import Plain
from hermes_agent.host.tasks import spawn

log = logging.getLogger(__name__)

WATCHING = "hermes_agent.host.watching:watching"
REST_SECONDS = 0.2
"""How long a file must be left alone before it is read: editors write more than once."""
AT_ONCE = (
    *("gateway.channels", "gateway.largest_file_mb", "gateway.longest_message", "gateway.messages_per_minute"),
    *("webhooks.routes", "webhooks.clock_skew", "webhooks.max_body_mb"),  # Their server reads them itself.
)
DRAIN = "gateway.drain_seconds"
Kinds = Callable[[GatewaySettings], Mapping[str, Kind]]
"""The channels that are switched on. Raises `ConfigError`."""
Apply = Callable[[GatewaySettings, Mapping[str, Kind]], Awaitable[None]]
"""Has settings, with the channels that they switch on, hold from now on."""


class Reloading:
    """Follows the settings of a home for a gateway, by `apply`. `notice` is what is wrong with them now (empty:
    nothing), told through `changed`."""

    def __init__(
        self, home: Home, loaded: Loaded[Settings], kinds: Kinds, apply: Apply, changed: Callable[[], None]
    ) -> None:
        self.notice = loaded.notice
        self._home = home
        self._apply = apply
        self._plain = leaves(loaded.plain)
        self._kinds = kinds
        self._changed = changed
        self._wanted = asyncio.Event()

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Read the settings again whenever the file is written, or `look` is called, until the block ends."""
        task = spawn(self._follow(), name="settings")
        name = self._home.config_file.name
        with late(WATCHING)(self._home.root, lambda written: self.look() if written == name else None) as hears:
            if not hears:
                log.info("this system does not tell when config.yaml is written: `hermes gateway reload` does")
            try:
                yield
            finally:
                task.cancel()

    def look(self) -> None:
        """Read the settings again, soon."""
        self._wanted.set()

    async def _follow(self) -> None:
        while True:
            await self._wanted.wait()
            await asyncio.sleep(REST_SECONDS)
            self._wanted.clear()
            # Boundary: one job.
            try:
                await self.read()
            except Exception:
                log.exception("config.yaml could not be taken over")

    async def read(self) -> None:
        """Read the settings, and have what changed hold from now on; broken ones change nothing, and that is said."""
        before = written(self._home)
        loaded = await asyncio.to_thread(load, self._home, Settings)
        if written(self._home) != before:  # Somebody is at it: half a file may look like a whole one.
            self.look()
            return
        notice = "" if before[1] else "config.yaml is gone or empty."
        try:
            kinds = self._kinds(loaded.value.gateway)
        except ConfigError as error:
            notice = str(error)
        notice = " ".join(str(problem) for problem in loaded.problems[:1]) or notice
        if notice:
            self._say_once(f"{notice} The settings of before stay in force.")
            return
        old, new = self._plain, leaves(loaded.plain)
        keys = sorted(key for key in old.keys() | new if old.get(key) != new.get(key))
        at_once = [key for key in keys if is_at_once(key)]
        if at_once:
            await self._apply(loaded.value.gateway, kinds)
        self._plain, self.notice = new, ""
        if keys:
            log.info("%s", told(at_once, [key for key in keys if key not in at_once]))
        self._changed()

    def _say_once(self, notice: str) -> None:
        if notice != self.notice:
            log.warning("%s", notice)
            self.notice = notice
            self._changed()


def written(home: Home) -> tuple[int, int]:
    """When config.yaml was written, in nanoseconds, and its size; zeros where it is not there."""
    try:
        found = home.config_file.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def is_at_once(key: str) -> bool:
    """Whether a setting holds without a restart."""
    return key == DRAIN or any(key == name or key.startswith(f"{name}.") for name in AT_ONCE)


def told(at_once: list[str], later: list[str]) -> str:
    """What changed, as one line; never the values."""
    parts = [f"from now on: {', '.join(at_once)}"] if at_once else []
    parts += [f"after a restart (`hermes gateway restart`): {', '.join(later)}"] if later else []
    return f"config.yaml has changed; {'; '.join(parts)}"


def leaves(values: Mapping[str, Plain], prefix: str = "") -> dict[str, Plain]:
    """Each value under its dotted key."""
    found: dict[str, Plain] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= leaves(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found
