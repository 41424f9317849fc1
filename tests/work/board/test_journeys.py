"""A person puts cards on the board, and processes of the real program do them."""

from pathlib import Path

import pytest

from hermes_agent.store.work.cards import Status
from tests.work.board.harness import completing, desk

pytestmark = pytest.mark.slow


async def test_a_card_is_done_by_a_process_of_its_own(tmp_path: Path):
    async with desk(tmp_path, completing) as here:
        card = await here.create()

        done = await here.until(card.id, Status.DONE, Status.BLOCKED)

        assert (done.status, done.summary, done.owner) == (Status.DONE, "Wrote hello.", "")
        assert await here.over(card.id) == ["completed"]
        assert await here.log(card.id) == ["created", "claimed", "workspace", "adopted", "complete"]
