"""Settings of hooks: which program is run at which event."""

from __future__ import annotations

from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import about


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSettings:
    """One hook (section `hooks.NAME`)."""

    on: tuple[str, ...] = field(
        default=(),
        metadata={
            "doc": "Events: gateway:start, message:received, run:start, run:end, tool:before, tool:after, reply:before."
        },
    )
    command: str = field(default="", metadata={"doc": "What is run; it reads the event as JSON on its input."})
    python: str = field(default="", metadata={"doc": "A Python file with a function `handle(event)`, instead."})
    tools: str = field(default=".*", metadata={"doc": "Pattern of the tools whose calls it is told of."})
    seconds: float = field(default=10.0, metadata=about("How long it may take.", least=0.1, most=600))
