"""What each dialect hands over when it was opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.transaction import Engine
from hermes_agent.store.workers import Presence, Schema

if TYPE_CHECKING:
    from hermes_agent.store.search import Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """One database: where changes run, how a worker is noticed, where words are found (made when first looked for), and
    what the person should know of how it was found (empty: nothing)."""

    engine: Engine
    presence: Presence
    schema: Schema
    index: Callable[[], Index]
    notice: str = ""
