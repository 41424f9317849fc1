"""Delivery: what cannot be shown now is shown later, and what never can be is told."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.agent.loop import STILL_CUT
from hermes_agent.core.chat import Content, Conversation, Letter, Slot, SlotState
from hermes_agent.core.errors import DatabaseUnreachable, DiskFull
from hermes_agent.core.messages import StopReason
from hermes_agent.gateway.channel import (
    ChannelError,
    NeverHere,
    NotNow,
    OutcomeUnknown,
    Part,
    Removed,
    Said,
    Sender,
    TokenRefused,
)
from hermes_agent.gateway.channel_runtime import REPEAT, made
from hermes_agent.gateway.delivery import DAY, DEFECT, FEWEST, KEPT, LONGEST_PAUSE, MOST, Delivery
from hermes_agent.providers.demo.script import Answer, Say
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.clock import FakeClock
from hermes_agent.testing.platform import Trouble
from tests.gateway.harness import Harness, eventually, harness

TO = Conversation(platform="fake", chat="1")


async def put(here: Harness, key: str = "k", text: str = "Hello.", to: Conversation = TO) -> None:
    letter = Letter(key=key, to=to, content=Content(text=text))
    await here.store.write(lambda tx: here.store.outbox.put(tx, letter))
    here.gateway.delivery.wake()


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
    async with harness(tmp_path, []) as here:
        await put(here)
        await here.shown()
        slot = await here.store.outbox.find("k")
        delivery, line = here.gateway.delivery, here.gateway.known["fake"]

        found = delivery._judged(slot, line, failed)

        assert (found[0], found[2]) == (state, delay)
        assert found[1]


async def test_what_may_be_there_already_stays_marked_though_the_next_attempt_is_refused(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        here.platform.chats.retry_after = 0
        here.platform.chats.order(Trouble.DEAF, "send")
        here.platform.chats.order(Trouble.BUSY, "send")
        await put(here)
        shown = await here.shown(2)

        assert [message.text for message in shown] == ["Hello.", f"{REPEAT}Hello.".strip()]
        assert (await here.store.outbox.tally()).repeated == 1


@pytest.mark.parametrize("failed", [NotNow("busy"), OutcomeUnknown("busy"), TokenRefused("busy")])
async def test_what_could_not_be_shown_for_a_day_is_given_up(tmp_path: Path, failed: ChannelError):
    async with harness(tmp_path, []) as here:
        slot = await of_yesterday(here, FEWEST)

        state, error, _ = here.gateway.delivery._judged(slot, here.gateway.known["fake"], failed)

        assert state is SlotState.FAILED
        assert error == "Given up after a day: busy"


async def of_yesterday(here: Harness, attempts: int) -> Slot:
    letter = Letter(key="old", to=TO, content=Content(text="Hello."))
    long_ago = here.gateway.runtime.clock.now() - DAY - 1
    await here.store.write(lambda tx: here.store.outbox.put(tx, letter, at=long_ago))
    slot = await here.store.outbox.find("old")
    assert slot is not None
    return replace(slot, attempts=attempts)


async def test_after_a_day_on_which_nobody_tried_one_failure_gives_nothing_up(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        slot = await of_yesterday(here, 0)

        state, _, _ = here.gateway.delivery._judged(slot, here.gateway.known["fake"], NotNow("no network yet"))

        assert state is SlotState.PENDING


async def test_however_often_a_platform_said_no_there_is_a_next_attempt(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        await put(here)
        await here.shown()
        slot = await here.store.outbox.find("k")
        assert slot is not None
        often = replace(slot, attempts=5000)

        state, _, delay = here.gateway.delivery._judged(often, here.gateway.known["fake"], NotNow("busy"))

        assert (state, delay) == (SlotState.PENDING, LONGEST_PAUSE)


async def test_a_defect_that_lasts_for_a_day_is_given_up(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        slot = await of_yesterday(here, FEWEST)

        state, _, _ = here.gateway.delivery._still(slot, SlotState.UNSURE, "a defect", 60.0)

        assert state is SlotState.FAILED


class Failing:
    """A call of the outbox that fails so often first."""

    def __init__(self, real: Callable[..., Awaitable[object]], times: int) -> None:
        self.real = real
        self.left = times

    async def __call__(self, *given: object, **more: object) -> object:
        if self.left:
            self.left -= 1
            raise DiskFull("No room left on the disk.")
        return await self.real(*given, **more)


async def test_what_was_sent_is_noted_when_the_store_can_write_again_and_never_sent_twice(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        settle = here.store.outbox.complete = Failing(here.store.outbox.complete, 2)
        await put(here)
        await put(here, "k2", "What comes after it.")

        assert [message.text for message in await here.shown(2)] == ["Hello.", "What comes after it."]
        assert not settle.left


async def test_what_could_not_be_noted_before_it_was_sent_is_sent_later_without_a_mark(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        here.store.outbox.start = Failing(here.store.outbox.start, 1)
        await put(here)

        assert [message.text for message in await here.shown()] == ["Hello."]


async def test_what_a_claim_took_without_an_answer_is_given_back_when_the_store_can_write(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        real, failures = here.store.outbox.claim, [DatabaseUnreachable("away")]

        async def claim(*given: object) -> object:
            slots = await real(*given)
            if slots and failures:
                raise failures.pop()
            return slots

        here.store.outbox.claim = claim
        here.store.outbox.give_back = Failing(here.store.outbox.give_back, 1)
        await put(here)

        assert [message.text for message in await here.shown()] == ["Hello."]


async def test_that_nobody_can_be_told_of_what_was_given_up_harms_nothing_else(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        here.gateway.notices.undelivered = Failing(here.gateway.notices.undelivered, 1)
        here.platform.chats.order(Trouble.GONE, "send")
        await put(here)
        await put(here, "k2", "What comes after it.")

        assert [message.text for message in await here.shown()] == ["What comes after it."]


async def test_a_platform_that_hangs_holds_up_no_other(tmp_path: Path):
    async with harness(tmp_path, [], gateway="drain_seconds: 0") as here:
        other = FakePlatform(name="other")
        here.gateway.lines["other"] = made(other.kind(), other.made(None), here.gateway.runtime.clock)

        async def hangs(*_: object) -> str:
            await asyncio.Event().wait()
            raise AssertionError

        here.gateway.known["fake"].channel.send = hangs
        for number in range(MOST + 1):
            await put(here, f"k{number}", to=replace(TO, chat=str(number)))
        await eventually(lambda: len(here.gateway.delivery._at_work) == MOST)
        await put(here, "other", to=replace(TO, platform="other"))

        await eventually(lambda: bool(other.chats.of("1")), 5.0)
        at_work = list(here.gateway.delivery._at_work.values())
    assert all(task.cancelled() for task in at_work)


def breaking(here: Harness, on: str) -> None:
    """The channel has a defect in what it does with such texts."""
    channel = here.gateway.known["fake"].channel
    real = channel.send

    async def send(to: Conversation, part: Part, key: str) -> str:
        if on in part.text:
            raise ZeroDivisionError
        return await real(to, part, key)

    channel.send = send


async def test_what_cannot_be_shown_as_it_is_is_shown_in_plain_words(tmp_path: Path):
    async with harness(tmp_path, [Say("It *is* [here](http://x.test)."), Say("Next.")]) as here:
        breaking(here, "*")
        await here.platform.say("Where?", user="7", chat="1")

        (shown,) = await here.shown()

        assert shown.text == f"{REPEAT}It  is   here  http://x.test ."
        assert await here.ask("And?") == "Next."


@pytest.mark.parametrize("at_home", [True, False])
async def test_what_cannot_be_shown_at_all_is_given_up_soon_and_its_chat_is_told_and_goes_on(
    tmp_path: Path, at_home: bool
):
    async with harness(tmp_path, [Say("I have a zebra."), Say("Next.")]) as here:
        breaking(here, "zebra")
        if at_home:
            await here.ask("/sethome")
        await here.platform.say("What have you?", user="7", chat="1")

        await eventually(lambda: any("I could not deliver" in message.text for message in here.platform.chats.of("1")))

        assert here.platform.chats.of("1")[-1].text == (
            "I could not deliver a message here: a defect in this program. Ask me again if you need it."
        )
        assert (await here.ask("And?")).startswith("Next.")
        (failed,) = await here.store.outbox.failed()
        assert here.gateway.known["fake"].note == f"message {failed.id} could not be shown: {DEFECT}"


async def test_a_defect_before_anything_is_sent_is_no_repeat(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        line, broken = here.gateway.known["fake"], [1]
        real = line.words

        def words(text: str) -> str:
            if broken:
                raise ZeroDivisionError(broken.pop())
            return real(text)

        line.__class__ = type("Broken", (line.__class__,), {"words": staticmethod(words), "__slots__": ()})
        await put(here)

        assert [message.text for message in await here.shown()] == ["Hello."]


@pytest.mark.parametrize("failure", [DatabaseUnreachable("away"), KeyError("a defect")])
async def test_delivery_goes_on_after_a_failure(tmp_path: Path, failure: Exception):
    async with harness(tmp_path, []) as here:
        real, failures = here.store.outbox.claim, [failure]

        async def claim(*given: object) -> object:
            if failures:
                raise failures.pop()
            return await real(*given)

        here.gateway.delivery._outbox.claim = claim
        await put(here)

        assert (await here.shown())[0].text == "Hello."


async def test_who_lost_a_slot_says_nothing_about_it(tmp_path: Path):
    async with harness(tmp_path, []) as here:
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


async def test_a_gateway_that_runs_for_months_forgets_what_it_delivered_long_ago(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        await put(here)
        await here.shown()
        delivery: Delivery = here.gateway.delivery
        clock = FakeClock(now=here.gateway.runtime.clock.now() + KEPT + 1)
        delivery._clock, delivery._pruned = clock, -DAY
        delivery.wake()

        async def forgotten() -> bool:
            return await here.store.outbox.find("k") is None

        await eventually(forgotten)


async def test_a_reply_that_stays_cut_says_so_in_the_chat(tmp_path: Path):
    script = [Answer(pieces=(Say(f"part {number}, "),), stop=StopReason.LENGTH) for number in range(4)]
    async with harness(tmp_path, script) as here:
        await here.ask("Sing")

        said = " ".join(" ".join(message.text for message in await here.shown()).split())
        assert said == f"part 0, part 1, part 2, part 3, {STILL_CUT}"


HOME = "owners: ['7']\nhome: '7'\n"
GROUP = f"{HOME}groups: ['5']\n"


async def test_a_chat_that_is_gone_is_told_to_the_owner_and_the_reply_is_kept(tmp_path: Path):
    async with harness(tmp_path, [Say("The answer is 42.")], GROUP) as here:
        here.platform.chats.order(Trouble.GONE, "send")
        await here.platform.say("Hi", chat="5", group=True, addressed=True)

        (told,) = await here.shown(chat="7")
        assert "I could not deliver" in told.text
        assert "The chat is gone." in told.text
        (slot,) = await here.store.outbox.failed()
        assert slot.content.text == "The answer is 42."


async def test_an_agent_that_is_removed_from_a_group_tells_its_owner_once(tmp_path: Path):
    async with harness(tmp_path, [], GROUP) as here:
        gone = Removed(where=here.platform.where("5", group=True), reason="The bot was kicked.")
        await here.platform.tell(gone)
        await here.platform.tell(gone)
        await here.shown(chat="7")
        await here.rest()

        (told,) = here.platform.chats.of("7")
        assert "The bot was kicked." in told.text


async def test_who_puts_the_agent_out_of_a_chat_where_it_never_answered_reaches_nobody_by_it(tmp_path: Path):
    async with harness(tmp_path, [], GROUP) as here:
        for chat, group in (("6", True), ("66", True), ("8", False)):
            await here.platform.tell(Removed(where=here.platform.where(chat, group=group), reason="Kicked."))
        await here.platform.tell(Removed(where=here.platform.where("5", group=True), reason="Blocked."))
        await here.shown(chat="7")
        await here.rest()

        (told,) = here.platform.chats.of("7")
        assert "Blocked." in told.text


async def test_a_person_who_talked_with_the_agent_and_blocks_it_is_told_of(tmp_path: Path):
    async with harness(tmp_path, [Say("Hello.")], f"{HOME}members: ['8']\n") as here:
        await here.ask("Hi", user="8", chat="8")
        await here.platform.tell(Removed(where=here.platform.where("8"), reason="Blocked."))
        (told,) = await here.shown(chat="7")

        assert "Blocked." in told.text


@pytest.mark.parametrize("kind", ["dm", "group"])
async def test_it_is_told_also_where_nobody_says_any_more_who_that_person_was(tmp_path: Path, kind: str):
    async with harness(tmp_path, [Say("Hello.")], f"{HOME}members: ['8']\n") as here:
        where = here.platform.where("room")
        said = Said(
            source_id="1", where=replace(where, participant="8"), sender=Sender(user="8", name="Ann"), text="Hi", at=1.0
        )
        await here.platform.tell(said)
        await here.shown(chat="room")
        await here.platform.tell(Removed(where=replace(where, chat_kind=kind), reason="Kicked."))
        (told,) = await here.shown(chat="7")

        assert "Kicked." in told.text


async def test_what_cannot_be_told_at_home_is_told_nowhere_else(tmp_path: Path):
    async with harness(tmp_path, [Say("Hello.")], HOME) as here:
        for _ in range(3):
            here.platform.chats.order(Trouble.GONE, "send")
        await here.platform.say("Hi", chat="7")
        await here.platform.say("Hi")

        async def failed() -> bool:
            return len(await here.store.outbox.failed()) == 3

        await eventually(failed)
        await here.rest()
        assert not here.platform.chats.messages
