"""What the learning of one home has of its process."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from hermes_agent.app.settings import Settings
from hermes_agent.app.skills import Skills
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.ids import Ids
from hermes_agent.core.inbound import Standing
from hermes_agent.memory.notes import Notes
from hermes_agent.replay.ledger import Book
from hermes_agent.store.database import Store

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from hermes_agent.app.auxiliary.settings import Purpose
    from hermes_agent.core.model import Model
    from hermes_agent.providers.broker import Ledger
    from hermes_agent.store.sessions import Session


@dataclass(kw_only=True)
class LearningHome:
    """The parts of a process that learning uses. Where it is `taped`, nothing is learned; `tools` names the tools that
    there are."""

    store: Store
    clock: Clock
    ids: Ids
    settings: Settings
    skills: Skills
    notes: Notes
    standing: Callable[[str], Standing]
    auxiliary: Callable[[Purpose, Session, Ledger], Awaitable[Model]]
    book: Book
    tools: Callable[[], Collection[str]] = tuple
    taped: bool = False
