"""Status line of the chat: model, context use, cost, session and activity, folded from events."""

from __future__ import annotations

from hermes_agent.cli.chat.text import one_line
from hermes_agent.cli.output import shortened, width
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Event, Replied

GAP = " · "


@dataclass(slots=True, kw_only=True)
class Status:
    """Data of the status line.

    `window` and `used` in tokens (`used` None: unknown), `cost` in US dollars without the `unpriced` calls.
    """

    model: str
    window: int
    session: str = ""
    title: str = ""
    notice: bool = False
    used: int | None = None
    calls: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def see(self, event: Event) -> None:
        """Apply an event: count replies and their usage."""
        match event:
            case Replied(usage=usage, cost=cost):
                self.calls += 1
                self.used = usage.input + usage.output if usage.known else self.used
                self.cost += cost or 0.0
                self.unpriced += cost is None
            case _:
                pass

    @property
    def context(self) -> str:
        """Share of the context window in use, as text."""
        if not self.calls:
            return ""
        if self.used is None or not self.window:
            return "context unknown"
        return f"context {100 * self.used / self.window:.0f} %"

    @property
    def price(self) -> str:
        """The session's cost, as text."""
        if not self.calls:
            return ""
        if self.unpriced == self.calls:
            return "cost unknown"
        return f"${self.cost:.4f}" + (" + unknown" if self.unpriced else "")

    def line(self, activity: str, columns: int) -> str:
        """The line in at most `columns` cells; the least important parts are dropped first."""
        name = one_line(self.title or self.session, 30)
        parts = [activity, "! config.yaml" if self.notice else "", self.model, self.context, self.price, name]
        least_first = [5, 4, 1, 3, 2]
        while width(GAP.join(filter(None, parts))) > columns and least_first:
            parts[least_first.pop(0)] = ""
        return shortened(GAP.join(filter(None, parts)), columns)
