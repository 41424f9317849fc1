"""Operation that lists sessions as a person recognises them: by their first words, age, folder and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.app.operations.sessions import list_sessions
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import MessageTaken
from hermes_agent.core.shown import words_of
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.usage import GroupBy

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem

FIRST_ENTRIES = 8
LONGEST_WORDS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """A session with the first words that were said in it, and its cost in US dollars (None: unknown)."""

    record: SessionRecord
    words: str
    calls: int
    cost: float | None

    @property
    def price(self) -> str:
        """The cost as text; empty where no model was asked or the cost is unknown."""
        return f"${self.cost:.2f}" if self.cost is not None and self.calls else ""


async def summarize_sessions(access: Access[HomeSystem], limit: int) -> list[SessionSummary]:
    """The person's sessions as `list_sessions` gives them, each with its first words and cost."""
    store = access.system.store
    totals = {each.key: each for each in await store.usage.totals(GroupBy.SESSION)}
    found = []
    for record in await list_sessions(access, limit):
        entries = await store.history.entries(record.id, 0, FIRST_ENTRIES)
        said = (words_of(each.event.message) for each in entries if isinstance(each.event, MessageTaken))
        words = " ".join(next(filter(None, said), "").split())[:LONGEST_WORDS]
        total = totals.get(record.id)
        cost = None if total is None or total.unpriced else total.cost
        found.append(SessionSummary(record=record, words=words, calls=total.calls if total else 0, cost=cost))
    return found
