"""Delivery: what cannot be shown now is shown later, and what never can be is told."""

from pathlib import Path

import pytest

from hermes_agent.core.errors import DatabaseUnreachable
from hermes_agent.core.inbound import Conversation
from hermes_agent.core.outbound import Content, Letter, SlotState
from hermes_agent.gateway.channel import ChannelError, NeverHere, NotNow, OutcomeUnknown, TokenRefused
from hermes_agent.gateway.delivery import DAY, LONGEST_PAUSE, Delivery
from tests.gateway.house import House, eventually, house

TO = Conversation(platform="fake", chat="1")


async def put(here: House, key: str = "k", text: str = "Hello.") -> None:
    letter = Letter(key=key, to=TO, content=Content(text=text))
    await here.store.write(lambda tx: here.store.outbox.put(tx, letter))
    here.gateway.delivery.look()


@pytest.mark.parametrize(
    ("failed", "state", "delay"),
    [
        (NotNow("busy"), SlotState.PENDING, 1.0),
        (NotNow("busy", retry_after=7.0), SlotState.PENDING, 7.0),
        (OutcomeUnknown("cut"), SlotState.UNSURE, 1.0),
        (TokenRefused("wrong"), SlotState.PENDING, LONGEST_PAUSE),
        (NeverHere("gone"), SlotState.FAILED, 0.0),
        (ChannelError(), SlotState.FAILED, 0.0),
    ],
)
async def test_what_becomes_of_a_slot_after_a_failure(tmp_path: Path, failed: ChannelError, state: str, delay: float):
    async with house(tmp_path, []) as here:
        await put(here)
        await here.shown()
        slot = await here.store.outbox.find("k")
        delivery, line = here.gateway.delivery, here.gateway.known["fake"]

        found = delivery._judged(slot, line, failed)

        assert (found[0], found[2]) == (state, delay)
        assert found[1]


async def test_what_could_not_be_shown_for_a_day_is_given_up(tmp_path: Path):
    async with house(tmp_path, []) as here:
        letter = Letter(key="old", to=TO, content=Content(text="Hello."))
        long_ago = here.gateway.runtime.clock.now() - DAY - 1
        await here.store.write(lambda tx: here.store.outbox.put(tx, letter, at=long_ago))
        slot = await here.store.outbox.find("old")

        state, error, _ = here.gateway.delivery._judged(slot, here.gateway.known["fake"], NotNow("busy"))

        assert state is SlotState.FAILED
        assert error == "Given up after a day: busy"


async def test_a_defect_leaves_the_outcome_open(tmp_path: Path):
    async with house(tmp_path, []) as here:

        async def broken(*_: object) -> str:
            raise ZeroDivisionError

        channel = here.gateway.known["fake"].channel
        channel.send = broken
        await put(here)

        async def unsure() -> bool:
            found = await here.store.outbox.find("k")
            return found is not None and found.state is SlotState.UNSURE and found.error == "a defect"

        await eventually(unsure)


async def test_delivery_goes_on_after_a_failure_of_the_store(tmp_path: Path):
    async with house(tmp_path, []) as here:
        real, failures = here.store.outbox.claim, [DatabaseUnreachable("away")]

        async def claim(*given: object) -> object:
            if failures:
                raise failures.pop()
            return await real(*given)

        here.gateway.delivery._outbox.claim = claim
        await put(here)

        assert (await here.shown())[0].text == "Hello."


async def test_who_lost_a_slot_says_nothing_about_it(tmp_path: Path):
    async with house(tmp_path, []) as here:
        await put(here)
        await here.shown()
        slot = await here.store.outbox.find("k")
        delivery: Delivery = here.gateway.delivery

        delivery._at_work[slot.id] = None
        await delivery._deliver(slot, here.gateway.lines["fake"])

        assert len(here.platform.chats.of("1")) == 1
        found = await here.store.outbox.find("k")
        assert found is not None
        assert found.state is SlotState.SENT
