"""What each dialect hands over when it was opened."""

from __future__ import annotations

from dataclasses import dataclass

from hermes_agent.store.search import Index
from hermes_agent.store.transaction import Engine
from hermes_agent.store.workers import Presence


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """One database: where changes run, how a worker is noticed, where words are found."""

    engine: Engine
    presence: Presence
    index: Index
