"""What a worker is told, and how it takes a card over."""

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.core.errors import LostLease
from hermes_agent.core.messages import Origin
from hermes_agent.core.section import estimate_tokens
from hermes_agent.store.work.cards import Status
from hermes_agent.work.board.rules import Order, Verb
from hermes_agent.work.board.worker import ROLE, adopt, again, last_words
from tests.work.board.boards import ANNA, ME, claimed, held, made, opened


def test_the_prompt_of_a_worker_is_short():
    assert ROLE.count("\n") < 64
    assert estimate_tokens(ROLE) <= 900


async def test_a_claim_is_taken_over_once(tmp_path: Path):
    async with opened(tmp_path) as board:
        await made(board)
        card, run = await claimed(board)
        holding = await adopt(board, card.id, run.epoch)
        assert (holding.card.status, holding.card.epoch, holding.profile) == (Status.RUNNING, run.epoch + 1, "")
        with pytest.raises(LostLease, match="claimed anew"):
            await adopt(board, card.id, run.epoch)


async def test_a_card_that_was_moved_before_its_process_began_is_not_taken_over(tmp_path: Path):
    async with opened(tmp_path) as board:
        await made(board)
        card, run = await claimed(board)
        await board.move(ME, card.id, Order(verb=Verb.CANCEL))
        with pytest.raises(LostLease):
            await adopt(board, card.id, run.epoch)


async def test_what_others_said_is_told_with_their_label(tmp_path: Path):
    async with opened(tmp_path) as board:
        card = await made(board)
        await board.comment(ME, card.id, "from me")
        await board.comment(replace(ANNA, sees_all=True), card.id, "from anna")
        parts = last_words(await board.cards.events(card.id))
        assert [(part.text.strip(), part.origin) for part in parts if part.origin is not Origin.RUNTIME] == [
            ("from me", Origin.OWNER),
            ("from anna", Origin.MEMBER),
        ]


async def test_a_session_whose_card_comes_back_hears_what_is_new(tmp_path: Path):
    async with opened(tmp_path) as board:
        card = await made(board)
        await board.comment(ME, card.id, "before")
        await held(board)
        await board.comment(ME, card.id, "after")
        now = await board.cards.get(card.id)
        said = "".join(part.text for part in again(now, await board.cards.events(card.id)))
        assert "after" in said
        assert "before" not in said
        assert "failed attempts: 0 of 2" in said
