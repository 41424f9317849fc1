"""The activity of the current task: a name for other processes, and a way to show the person a line."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar
from weakref import WeakMethod

from hermes_agent.core.dataclass import dataclass

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """The current work of a task. `name` is shown to other processes ("session 2026..."); `notify` shows a line to
    the person who waits, at once and without blocking."""

    name: str = ""
    notify: Callable[[str], None] = _log.warning


activity: ContextVar[Activity] = ContextVar("activity", default=Activity())  # noqa: B039 - the record is frozen
"""Tasks inherit it. A surface sets it for its process, the scheduler for each run."""


def while_there(notify: Callable[[str], None]) -> Callable[[str], None]:
    """Returns `notify` through a weak reference: a connection that outlives its task stops notifying when the object
    is gone."""
    found = WeakMethod(notify)

    def tell(text: str) -> None:
        if (there := found()) is not None:
            there(text)

    return tell
