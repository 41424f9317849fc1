"""What a run has taken to answer, and what of that was deleted where it was written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Inbound
from hermes_agent.core.messages import Text


def nobody() -> None:
    """Nobody is told."""


@dataclass(slots=True, kw_only=True)
class Withdrawals:
    """`words` are the messages that a run took, by their identity, with what they say. `gone` are those of which it has
    read that they were deleted, `announced` those of which this process was told; `overtaken` is called when nothing is
    left of what it took."""

    words: dict[str, Text | None] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    announced: set[str] = field(default_factory=set)
    overtaken: Callable[[], None] = nobody

    @property
    def lapsed(self) -> bool:
        """Whether all that the run was to answer was deleted, as far as it has read."""
        return bool(self.gone) and self.words.keys() <= self.gone

    def took(self, inbound: Inbound) -> None:
        """The run answers this."""
        if not inbound.answers:
            self.words[inbound.identity] = next(
                (part for part in reversed(inbound.parts) if isinstance(part, Text)), None
            )

    def announce(self, withdrawn: str) -> None:
        """The message of that identity was deleted; the mail that says so is in the inbox."""
        self.announced.add(withdrawn)
        self.see()

    def read(self, withdrawn: Iterable[str]) -> None:
        """The run had read, before it was interrupted, that these were deleted."""
        self.gone.update(self.words.keys() & set(withdrawn))
        self.announced.update(self.gone)

    def see(self) -> None:
        """Say so where nothing is left."""
        if self.words and self.words.keys() <= self.announced:
            self.overtaken()

    def next_run(self) -> None:
        """Another run begins, with other messages."""
        self.words.clear()
        self.gone.clear()
        self.announced.clear()
