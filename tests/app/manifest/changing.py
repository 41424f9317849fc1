"""A source whose tools come and go, and a toolset that is a line of a table: for tests of whole processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes_agent.app.tool_sources import ToolSource
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.inbound import Busy, Conversation, Inbound, Principal, Standing
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.tool import CallContext, Tool, tool
from hermes_agent.host.late import Needs
from hermes_agent.runs.front import Hermes
from hermes_agent.tools.schema import from_function


def made(name: str) -> Tool:
    return from_function(name, lambda: f"{name} did it", f"Does {name}.", ())


class Changing:
    """A `ToolSource` whose tools are those of these names, except for guests."""

    dynamic = True
    quarantined = ()

    def __init__(self, *names: str) -> None:
        self._listeners: list[Callable[[], None]] = []
        self._tools: Sequence[Tool] = tuple(map(made, names))
        self.closed = 0

    def source(self, _: Needs) -> ToolSource:
        return self

    def become(self, *names: str) -> None:
        self._tools = tuple(map(made, names))
        for changed in self._listeners:
            changed()

    def tools(self, surface: str, narrowed: Sequence[str]) -> Sequence[Tool]:
        return () if surface == "guest" else self._tools

    def subscribe(self, changed: Callable[[], None]) -> None:
        self._listeners.append(changed)

    async def close(self) -> None:
        self.closed += 1


class NoteTools:
    """A toolset with a need of its own: the front door."""

    def __init__(self, hermes: Hermes) -> None:
        self._hermes = hermes

    @tool(effect=Effect.WRITES, needs=(Capability.SPAWN,))
    async def note_later(self, words: str, context: CallContext) -> str:
        """Say something in this conversation, once this run is over.

        Args:
            words: what is said
        """
        record = await self._hermes.record(context.session)
        platform, _, user = record.principal.partition(":")
        later = Inbound(
            source="note",
            source_id=context.key,
            principal=Principal(platform=platform, user=user, standing=Standing.OWNER),
            conversation=Conversation.parse(record.conversation),
            parts=(Text(text=words, origin=Origin.OWNER),),
            received=record.updated,
            busy=Busy.ALONE,
        )
        await self._hermes.submit(later, record.id)
        return "It will be said."


def note_tools(needs: Needs) -> NoteTools:
    """What the line of the table names."""
    return NoteTools(needs.get(Hermes))
