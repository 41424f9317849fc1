"""`skills/.hub/taps.json`: the repositories that are looked through for skills."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from hermes_agent.core.errors import HomeError
from hermes_agent.host.files import read_small, write_private
from hermes_agent.host.locks import change_under
from hermes_agent.skills.depot import HUB
from hermes_agent.skills.depot.lock import Trust
from hermes_agent.skills.hub.errors import HubError

NAME = re.compile(r"[\w.-]{1,64}(/[\w.-]{1,64})?", re.ASCII)


class Tap(msgspec.Struct, frozen=True, kw_only=True):
    """A repository under a name of the person's; `ref` is a branch or tag, empty for its main branch."""

    name: str
    url: str
    trust: Trust = Trust.COMMUNITY
    ref: str = ""


class Taps:
    """The taps of one home. Reading them blocks."""

    def __init__(self, home: Path) -> None:
        self._path = home / HUB / "taps.json"

    def all(self) -> tuple[Tap, ...]:
        """In the order in which they were added. Raises `HomeError` for a file that is not ours."""
        content = read_small(self._path)
        try:
            return () if content is None else msgspec.json.decode(content, type=tuple[Tap, ...])
        except msgspec.DecodeError as error:
            raise HomeError(f"{self._path} cannot be read ({error}): repair it, or move it out of the way.") from error

    def get(self, name: str) -> Tap:
        """The tap of that name. Raises `HubError` with those there are."""
        taps = self.all()
        for tap in taps:
            if tap.name == name:
                return tap
        there = ", ".join(f"`{tap.name}`" for tap in taps) or "none yet; `hermes skills tap add owner/repository`"
        raise HubError(f"There is no tap `{name[:80]}`. Taps: {there}.")

    async def add(self, tap: Tap) -> None:
        """Add a tap, or replace the one of its name. Raises `HubError` for a name that is none."""
        if not NAME.fullmatch(tap.name):
            raise HubError(f"`{tap.name[:80]}` is not a name for a tap: letters, digits, `.`, `-`, `_`, and one `/`.")
        await self._write(tap.name, tap)

    async def remove(self, name: str) -> Tap:
        """Forget a tap; what was installed from it stays."""
        tap = self.get(name)
        await self._write(name, None)
        return tap

    async def _write(self, name: str, tap: Tap | None) -> None:
        def work() -> None:
            others = [each for each in self.all() if each.name != name]
            content = msgspec.json.encode([*others, *([tap] if tap else [])])
            write_private(self._path, msgspec.json.format(content))

        await change_under(self._path.with_suffix(".lock"), work)
