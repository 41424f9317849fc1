"""A reply while it is written: which of its blocks stand on the screen for good, and what is still open."""

from __future__ import annotations

from hermes_agent.cli.chat.blocks import Blocks


class Words:
    """The words of one reply. What was given out once is never given out again."""

    def __init__(self) -> None:
        self._blocks = Blocks()
        self._given = ""

    @property
    def tail(self) -> str:
        """What is not given out yet."""
        return self._blocks.tail

    @property
    def given(self) -> bool:
        """Whether anything of this reply is on the screen for good."""
        return bool(self._given.strip())

    def add(self, text: str) -> list[str]:
        """The blocks that this piece completes."""
        return self._give(self._blocks.feed(text))

    def finish(self, whole: str) -> tuple[list[str], bool]:
        """The blocks that are left of the whole reply, and whether they continue what was given out.

        False where pieces were missed on the way: then the blocks are those of the whole reply.
        """
        fits = whole.startswith(self._given)
        rest = Blocks()
        blocks = rest.feed(whole[len(self._given) if fits else 0 :])
        blocks += rest.close()
        self.forget()
        return blocks, fits

    def forget(self) -> None:
        """Begin another reply."""
        self._blocks = Blocks()
        self._given = ""

    def _give(self, blocks: list[str]) -> list[str]:
        self._given += "".join(blocks)
        return blocks
