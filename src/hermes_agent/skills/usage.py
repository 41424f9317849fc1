"""How often each skill was looked at, used and changed, and when last."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.host.files import read_small, write_private
from hermes_agent.host.locks import change_under

What = Literal["views", "uses", "patches"]
LARGEST = 1 << 26


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one skill; `last` is the time of the last of them, in seconds since 1970."""

    views: int = 0
    uses: int = 0
    patches: int = 0
    last: float = 0.0


class Usage:
    """Counts by name, in `skills/.usage.json`."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._path = folder / ".usage.json"
        self._clock = clock

    async def count(self, name: str, what: What) -> None:
        """One more."""

        def work() -> None:
            everything = self.all()
            before = everything.get(name, Used())
            counted = {what: getattr(before, what) + 1, "last": self._clock.now()}
            everything[name] = msgspec.structs.replace(before, **counted)
            write_private(self._path, msgspec.json.encode(everything), durable=False)

        await change_under(self._path.with_suffix(".lock"), work)

    def all(self) -> dict[str, Used]:
        """Everything that was counted. Blocks; a damaged file counts as none."""
        content = read_small(self._path, LARGEST)
        try:
            return {} if content is None else msgspec.json.decode(content, type=dict[str, Used])
        except msgspec.DecodeError:
            return {}
