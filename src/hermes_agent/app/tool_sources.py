"""Where tools come from: what a source of tools promises, and the sources that never change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from hermes_agent.core.tool import Quarantined, Tool
from hermes_agent.host.late import Needs, late
from hermes_agent.memory.settings import MemorySettings

COLLECT = "hermes_agent.tools.schema:collect"
MEMORY = "hermes_agent.app.memory_provider:MemoryProvider"


class ToolSource(Protocol):
    """Gives the tools of one origin.

    - `dynamic` says whether its tools may come and go while a session lasts: `find_tools` finds them, and no prompt's
      prefix names them;
    - `tools` are those of a surface now, in a fixed order, at once and from memory; a conversation may be `narrowed`
      to toolsets;
    - `subscribe` has `changed` called in the event loop after each change of what `tools` gives;
    - `quarantined` are those that cannot be offered, with the reason;
    - `close` ends what it holds.
    """

    @property
    def dynamic(self) -> bool: ...

    @property
    def quarantined(self) -> Sequence[Quarantined]: ...

    def tools(self, surface: str, narrowed: Sequence[str]) -> Sequence[Tool]: ...

    def subscribe(self, changed: Callable[[], None]) -> None: ...

    async def close(self) -> None: ...


class FixedTools:
    """A source whose tools are the same on every surface as long as it lasts; `given` are tools, or what holds some."""

    dynamic = False
    quarantined: Sequence[Quarantined] = ()

    def __init__(self, given: Iterable[object] = ()) -> None:
        self._tools: Sequence[Tool] = ()
        if given := tuple(given):
            self._tools, self.quarantined = late(COLLECT)(given)

    def tools(self, surface: str, narrowed: Sequence[str]) -> Sequence[Tool]:  # noqa: ARG002 - the Protocol's shape
        """All of them."""
        return self._tools

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Nothing ever changes."""

    async def close(self) -> None:
        """Nothing is held."""


def memory_tools(needs: Needs) -> FixedTools:
    """The tools of the memory outside the notes, where the settings name one."""
    return FixedTools(() if needs.get(MemorySettings).provider == "none" else needs.made(MEMORY).tools())
