"""Hot reload: watches config.yaml and .env, applies valid changes to the running process, and reports problems."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from hermes_agent.app.settings import Settings
from hermes_agent.app.system import System
from hermes_agent.core.errors import HermesError
from hermes_agent.host.config import Loaded, load
from hermes_agent.host.file_watch import watching
from hermes_agent.host.schema import Plain
from hermes_agent.host.secrets import Secrets, open_secrets
from hermes_agent.host.tasks import spawn

log = logging.getLogger(__name__)

REST_SECONDS = 0.2
"""How long a file must be left alone before it is read: editors write more than once."""
STORE = "store"
"""The section that a process never goes by anew: its runs stand on that database."""
STAYS = "The settings of before stay in force."


class Follower(Protocol):
    """A part of a running process that applies new settings, such as the API servers."""

    def check(self, settings: Settings, secret: Callable[[str], str]) -> None:
        """Validate settings and secrets (by name). Raises `HermesError` if this part cannot use them."""

    async def follow(self, settings: Settings) -> None:
        """Apply settings, which are already in force; also called if only secrets changed. Raises `HermesError` if
        applying fails; a further call retries."""


class Reloading:
    """Reloads settings and secrets when their files change: new runs use them, and `followers` apply them. `notice`:
    what is wrong with them now (empty: nothing), reported through `changed`; `later`: settings that need a restart."""

    def __init__(self, runtime: System, followers: list[Follower], changed: Callable[[], None]) -> None:
        self.followers = followers
        self.later: list[str] = []
        self._failed: list[str] = []
        self._runtime = runtime
        self._home = runtime.home
        self._begun = self._plain = leaves(runtime.loaded.plain)
        self._has_file = bool(size_of(self._home.config_file))
        self._changed = changed
        self._wanted = asyncio.Event()
        self._reading = asyncio.Lock()
        self.notice = runtime.loaded.notice or self._modelless()

    @property
    def problems(self) -> str:
        """Problems and pending restarts as sentences; empty if all settings are in force."""
        waits = f"After a restart (`hermes gateway restart`): {', '.join(self.later)}." if self.later else ""
        return " ".join(filter(None, (self.notice, waits)))

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Context manager: reload after each write of a file or call of `wake`; on exit waits for a reload in
        progress."""
        task = spawn(self._follow(), name="settings")
        names = {path.name for path in self._files}
        with watching(self._home.root, lambda written: self.wake() if written in names else None) as hears:
            if not hears:
                log.info("this system does not tell when config.yaml is written: `hermes gateway reload` does")
            try:
                yield
            finally:
                async with self._reading:
                    task.cancel()

    def wake(self) -> None:
        """Request a reload."""
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
        """Reload settings and secrets and apply what changed. Invalid ones change nothing and are reported."""
        async with self._reading:
            before = written(self._files)
            loaded = await asyncio.to_thread(load, self._home, Settings)
            try:
                secrets = await asyncio.to_thread(open_secrets, self._home)
                if written(self._files) != before:  # Somebody is at it: half a file may look like a whole one.
                    self.wake()
                    return
                self._check(loaded, secrets)
                await self._take_over(loaded, secrets)
            except HermesError as error:
                self._say_once(f"{error} {STAYS}")

    @property
    def _files(self) -> tuple[Path, ...]:
        return self._home.config_file, self._home.env_file

    def _check(self, loaded: Loaded[Settings], secrets: Secrets) -> None:
        """Raise `HermesError` for settings that cannot be used."""
        if loaded.problems:
            raise HermesError(str(loaded.problems[0]))
        if self._has_file and not size_of(self._home.config_file):
            raise HermesError("config.yaml is gone or empty.")
        for each in self.followers:
            each.check(loaded.value, secrets.get)

    async def _take_over(self, loaded: Loaded[Settings], secrets: Secrets) -> None:
        old, new = self._plain, leaves(loaded.plain)
        names = [f"{name} (.env)" for name in self._runtime.secrets.differs(secrets)]
        keys = changes(old, new)
        if (keys or names) and not self._runtime.has_cassette:
            await self._runtime.snapshots.renew(loaded, secrets)
        if keys or names or self._failed:
            self._failed = await self._followed(loaded.value)
        self._plain, self._has_file = new, bool(size_of(self._home.config_file))
        self.later = [key for key in changes(self._begun, new) if self._waits(key)]
        if keys or names:
            at_once = [] if self._runtime.has_cassette else names
            at_once = [*(key for key in keys if not self._waits(key)), *at_once]
            log.info("%s", report(at_once, [key for key in keys if self._waits(key)]))
        notice = " ".join(self._failed) or loaded.notice or self._modelless()
        if notice:
            self._say_once(notice)
        else:
            self.notice = ""
            self._changed()

    async def _followed(self, settings: Settings) -> list[str]:
        """Have the followers apply the settings. Returns their failures."""
        failed: list[str] = []
        for each in self.followers:
            try:
                await each.follow(settings)
            except HermesError as error:
                failed.append(str(error))
        return failed

    def _waits(self, key: str) -> bool:
        """Whether a setting needs a restart; in a recorded or replayed process everything that runs depend on does."""
        section = key.partition(".")[0]
        return section == STORE or (self._runtime.has_cassette and section != "gateway")

    def _modelless(self) -> str:
        """Why no model can be asked; empty if one can."""
        try:
            self._runtime.route()
        except HermesError as error:
            return str(error)
        return ""

    def _say_once(self, notice: str) -> None:
        if notice != self.notice:
            log.warning("%s", notice)
            self.notice = notice
        self._changed()


def written(files: tuple[Path, ...]) -> list[tuple[int, int]]:
    """Modification time in nanoseconds and size of each file; zeros if missing."""
    found = []
    for path in files:
        try:
            facts = path.stat()
        except OSError:
            found.append((0, 0))
        else:
            found.append((facts.st_mtime_ns, facts.st_size))
    return found


def size_of(file: Path) -> int:
    """Size in bytes; 0 if missing."""
    return written((file,))[0][1]


def changes(old: Mapping[str, Plain], new: Mapping[str, Plain]) -> list[str]:
    """Keys whose value was added, changed or removed."""
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))


def report(at_once: list[str], later: list[str]) -> str:
    """A log line that names the changed keys, never the values."""
    parts = [f"from now on: {', '.join(at_once)}"] if at_once else []
    parts += [f"after a restart (`hermes gateway restart`): {', '.join(later)}"] if later else []
    return f"the settings have changed; {'; '.join(parts)}"


def leaves(values: Mapping[str, Plain], prefix: str = "") -> dict[str, Plain]:
    """Flatten nested settings to dotted keys."""
    found: dict[str, Plain] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= leaves(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found
