"""Settings of hooks: which program is run at which event."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSettings:
    """One hook (section `hooks.NAME`)."""

    on: tuple[str, ...] = setting(
        (), "Events: gateway:start, message:received, run:start, run:end, tool:before, tool:after, reply:before."
    )
    command: str = setting("", "The command to run; it reads the event as JSON on standard input.")
    python: str = setting("", "A Python file with a function `handle(event)`, instead.")
    tools: str = setting(".*", "Pattern of the tools whose calls run it.")
    seconds: float = setting(10.0, "How long it may take.", least=0.1, most=600)
