"""Hermes: a self-improving agent runtime. `Agent` and `Tool` are the library; the command is `hermes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_agent import version
from hermes_agent.host.late import late

if TYPE_CHECKING:
    from hermes_agent.app.library import Agent, RunResult, Tool

__version__ = version.VERSION
__all__ = ["Agent", "RunResult", "Tool", "__version__"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the module's own attributes, loaded when they are first used
    if name in ("Agent", "RunResult", "Tool"):
        return late(f"hermes_agent.app.library:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
