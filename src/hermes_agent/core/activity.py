"""What the current task works on, and how the person who waits for it is told something."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar
from weakref import WeakMethod

from hermes_agent.core.dataclass import dataclass

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """`name` is what other processes are shown of it ("session 2026..."); `notify` shows a line to the person, at once
    and without waiting."""

    name: str = ""
    notify: Callable[[str], None] = _log.warning


activity: ContextVar[Activity] = ContextVar("activity", default=Activity())  # noqa: B039 - the record is frozen
"""Tasks inherit it. A surface sets it for its process, the scheduler for each run."""


def while_there(notify: Callable[[str], None]) -> Callable[[str], None]:
    """The same as long as its object is used elsewhere: what was begun in a task, such as a connection that is kept,
    holds the task's activity."""
    found = WeakMethod(notify)

    def tell(text: str) -> None:
        if (there := found()) is not None:
            there(text)

    return tell
