"""The outbox: in order, held by one, and never silent about what may have been sent twice."""

import pytest

from hermes_agent.core.chat import Button, Content, Conversation, Letter, Piece, Slot, SlotState
from hermes_agent.core.errors import LostLease
from hermes_agent.store.database import Store
from hermes_agent.store.workers import Timings
from hermes_agent.testing.clock import FakeClock
from tests.databases import OpenAnother
from tests.store.made import QUEUE, mail

CHANNELS = ("telegram",)
SHOWN = (Piece(receipt="100", version=1),)


def letter(key: str = "k1", text: str = "hello", *, chat: str = "1", inbox: int = 0) -> Letter:
    to = Conversation(platform="telegram", chat=chat, topic="work")
    return Letter(key=key, to=to, content=Content(text=text), session="s1", inbox=inbox)


async def put(store: Store, *letters: Letter) -> None:
    for each in letters:
        await store.write(lambda tx, each=each: store.outbox.put(tx, each))


async def claimed(store: Store) -> Slot:
    (slot,) = await store.outbox.claim(CHANNELS)
    return slot


async def test_who_listens_nowhere_has_nothing_to_wait_for(store: Store):
    await put(store, letter())

    assert await store.outbox.next_ready(()) is None


async def test_a_letter_is_claimed_as_it_was_put(store: Store):
    content = Content(text="May I?", buttons=(Button(label="Yes", value="once"),), question="q1")
    to = Conversation(platform="telegram", chat_kind="group", chat="1", thread="2", participant="ann")
    await put(store, Letter(key="k1", to=to, content=content, session="s1"))

    slot = await claimed(store)

    assert (slot.content, slot.to.key, slot.session) == (content, "telegram:group:1:2", "s1")
    assert (slot.state, slot.pieces, slot.attempts, slot.answers) == (SlotState.PENDING, (), 0, "")


async def test_a_slot_has_one_holder(store: Store, open_another: OpenAnother):
    other = await open_another()
    await put(store, letter())

    await claimed(store)

    assert await other.outbox.claim(CHANNELS) == []
    assert await store.outbox.claim(CHANNELS) == []


async def test_only_the_channels_that_are_asked_for_are_claimed(store: Store):
    await put(store, letter())

    assert await store.outbox.claim(("slack", "irc")) == []
    assert len(await store.outbox.claim(("slack", "telegram"))) == 1


async def test_a_place_gets_its_letters_in_order(store: Store):
    await put(store, letter("a"), letter("b"), letter("c", chat="2"))

    first = await store.outbox.claim(CHANNELS)
    assert [slot.key for slot in first] == ["a", "c"]

    await store.outbox.complete(first[0], SlotState.SENT, SHOWN)
    assert [slot.key for slot in await store.outbox.claim(CHANNELS)] == ["b"]


async def test_a_claim_takes_no_more_than_it_may(store: Store):
    await put(store, *(letter(f"k{number}", chat=str(number)) for number in range(5)))

    assert [slot.key for slot in await store.outbox.claim(CHANNELS, 2)] == ["k0", "k1"]


async def test_what_it_answers_is_known(store: Store):
    row = await store.inbox.accept(mail("77"), "s1", QUEUE)
    assert row is not None
    await put(store, letter(inbox=row))

    assert (await claimed(store)).answers == "77"


async def test_a_sent_slot_is_over(store: Store):
    await put(store, letter())
    slot = await claimed(store)

    await store.outbox.start(slot, ())
    await store.outbox.complete(slot, SlotState.SENT, SHOWN)

    found = await store.outbox.find("k1")
    assert found is not None
    assert (found.state, found.pieces) == (SlotState.SENT, SHOWN)
    assert await store.outbox.claim(CHANNELS) == []
    assert await store.outbox.next_ready(CHANNELS) is None


async def test_new_content_is_shown_in_the_same_slot(store: Store):
    await put(store, letter())
    await store.outbox.complete(await claimed(store), SlotState.SENT, SHOWN)

    await put(store, letter(text="other words"))

    slot = await claimed(store)
    assert (slot.content.text, slot.version, slot.pieces, slot.state) == ("other words", 2, SHOWN, SlotState.PENDING)


async def test_new_content_that_comes_while_a_slot_is_held_is_still_to_be_shown(store: Store):
    await put(store, letter())
    slot = await claimed(store)
    await put(store, letter(text="other words"))

    await store.outbox.complete(slot, SlotState.SENT, SHOWN)

    again = await claimed(store)
    assert (again.version, again.pieces, again.attempts) == (2, SHOWN, 0)


async def test_a_failure_is_tried_again_later_and_holds_up_its_place(open_another: OpenAnother):
    clock = FakeClock(now=1000.0)
    store = await open_another(clock=clock)
    await put(store, letter("a"), letter("b"))
    slot = await claimed(store)

    await store.outbox.complete(slot, SlotState.PENDING, (), error="429", delay=30.0)

    assert await store.outbox.claim(CHANNELS) == []
    assert await store.outbox.next_ready(CHANNELS) == 30.0
    clock.set_now(1031.0)
    again = await claimed(store)
    assert (again.key, again.attempts, again.error) == ("a", 1, "429")


async def test_a_clock_that_was_set_back_holds_nothing_up(open_another: OpenAnother):
    clock = FakeClock(now=100_000.0)
    store = await open_another(clock=clock)
    await put(store, letter())
    await store.outbox.complete(await claimed(store), SlotState.PENDING, (), error="429", delay=30.0)

    clock.set_now(10.0)

    assert await store.outbox.next_ready(CHANNELS) == 0.0
    assert len(await store.outbox.claim(CHANNELS)) == 1


async def test_what_was_refused_for_good_is_told(store: Store):
    await put(store, letter("a"), letter("b"))

    await store.outbox.complete(await claimed(store), SlotState.FAILED, (), error="The chat is gone.")

    assert [(slot.key, slot.error) for slot in await store.outbox.failed()] == [("a", "The chat is gone.")]
    assert (await claimed(store)).key == "b"


async def test_who_lost_a_slot_writes_nothing_more(store: Store, open_another: OpenAnother):
    await put(store, letter())
    slot = await claimed(store)
    await store.outbox.give_back()
    other = await open_another()
    await other.outbox.claim(CHANNELS)

    with pytest.raises(LostLease):
        await store.outbox.start(slot, ())
    with pytest.raises(LostLease):
        await store.outbox.complete(slot, SlotState.SENT, SHOWN)


@pytest.mark.parametrize(("begun", "state"), [(False, SlotState.PENDING), (True, SlotState.UNSURE)])
async def test_what_a_dead_holder_had_begun_is_unsure(store: Store, open_another: OpenAnother, begun: bool, state: str):
    dying = await open_another()
    await put(store, letter())
    slot = await claimed(dying)
    if begun:
        await dying.outbox.start(slot, ())
    await dying.workers.leave()

    assert (await claimed(store)).state is state


async def test_a_silent_holder_is_given_up(open_another: OpenAnother):
    timings = Timings(ttl=0.0, grace=0.0)
    silent, store = await open_another(timings=timings), await open_another(timings=timings)
    await put(silent, letter())
    slot = await claimed(silent)
    await silent.outbox.start(slot, ())

    await store.workers.reap()

    assert (await claimed(store)).state is SlotState.UNSURE


async def test_what_may_have_been_sent_twice_is_counted(store: Store):
    await put(store, letter("a"), letter("b", chat="2"))
    one, two = await store.outbox.claim(CHANNELS)

    await store.outbox.start(one, (), repeats=1)
    await store.outbox.complete(one, SlotState.SENT, SHOWN, repeats=1)
    await store.outbox.complete(two, SlotState.SENT, SHOWN)

    tally = await store.outbox.tally()
    assert (dict(tally.states), tally.repeated) == ({"sent": 2}, 1)


async def test_a_draft_becomes_the_reply(store: Store):
    draft = await store.outbox.open(letter(text="he"))
    assert draft is not None
    await store.outbox.complete(draft, SlotState.SENT, SHOWN)
    assert await store.outbox.claim(CHANNELS) == []

    await put(store, letter(text="hello"))

    slot = await claimed(store)
    assert (slot.content.text, slot.pieces) == ("hello", SHOWN)


async def test_a_draft_does_not_hold_up_its_place(store: Store):
    assert await store.outbox.open(letter()) is not None

    await put(store, letter("other"))

    assert (await claimed(store)).key == "other"


async def test_it_is_known_whether_something_is_still_to_be_shown_in_a_place(store: Store):
    assert await store.outbox.open(letter("draft")) is not None
    assert not await store.outbox.waits(letter().to)

    await put(store, letter("k1"))
    assert await store.outbox.waits(letter().to)
    assert not await store.outbox.waits(letter(chat="2").to)

    await store.outbox.complete(await claimed(store), SlotState.SENT, SHOWN)
    assert not await store.outbox.waits(letter().to)


async def test_a_reply_that_comes_while_its_draft_is_sent_waits_for_the_receipt(store: Store):
    draft = await store.outbox.open(letter(text="he"))
    assert draft is not None
    await put(store, letter(text="hello"))
    assert await store.outbox.claim(CHANNELS) == []

    await store.outbox.complete(draft, SlotState.SENT, SHOWN)

    assert (await claimed(store)).pieces == SHOWN


async def test_a_draft_of_an_interrupted_run_is_taken_up(store: Store):
    draft = await store.outbox.open(letter())
    assert draft is not None
    await store.outbox.complete(draft, SlotState.SENT, SHOWN)

    again = await store.outbox.open(letter())

    assert again is not None
    assert again.pieces == SHOWN
    assert await store.outbox.open(letter()) is None
    await store.outbox.complete(again, SlotState.SENT, SHOWN)


async def test_a_draft_whose_outcome_is_open_is_not_begun_again(store: Store):
    draft = await store.outbox.open(letter())
    assert draft is not None
    await store.outbox.complete(draft, SlotState.UNSURE, (), error="cut")

    assert await store.outbox.open(letter()) is None
    await put(store, letter("k2", chat="2"))

    assert (found := await store.outbox.find("k1")) is not None
    assert found.state is SlotState.UNSURE
    assert [slot.key for slot in await store.outbox.claim(CHANNELS)] == ["k2"]


async def test_no_draft_is_shown_over_a_reply(store: Store):
    await put(store, letter())

    assert await store.outbox.open(letter()) is None


async def test_an_answered_question_shows_the_answer_and_no_buttons(store: Store):
    to = Conversation(platform="telegram", chat="1")
    content = Content(text="May I?", buttons=(Button(label="Yes", value="once"),), question="q1")
    await put(store, Letter(key="q", to=to, content=content))
    await store.outbox.complete(await claimed(store), SlotState.SENT, SHOWN)

    assert await store.write(lambda tx: store.outbox.answered(tx, "q", "-> once"))
    assert not await store.write(lambda tx: store.outbox.answered(tx, "none", "", wake=False))

    slot = await claimed(store)
    assert slot.content == Content(text="May I?\n\n-> once")
    await store.write(lambda tx: store.outbox.answered(tx, "q", "", wake=False))


async def test_a_letter_may_be_put_without_waking_anybody(store: Store):
    await store.write(lambda tx: store.outbox.put(tx, letter(), wake=False))

    assert (await claimed(store)).key == "k1"


async def test_a_slot_is_found_by_its_id(store: Store):
    await put(store, letter())
    slot = await claimed(store)

    assert (await store.outbox.get(slot.id)) == await store.outbox.find("k1")
    assert await store.outbox.get(slot.id + 1) is None


async def test_what_ended_long_ago_is_forgotten(open_another: OpenAnother):
    clock = FakeClock(now=1000.0)
    store = await open_another(clock=clock)
    await put(store, letter("a"), letter("b", chat="2"))
    one, _ = await store.outbox.claim(CHANNELS)
    await store.outbox.complete(one, SlotState.SENT, SHOWN)

    assert await store.outbox.prune(1000.0) == 0
    assert await store.outbox.prune(1001.0) == 1
    assert await store.outbox.find("b") is not None


@pytest.mark.parametrize(
    "damage",
    [
        "body = '{'",
        "body = ''",
        "body = 'null'",
        "body = '[]'",
        """body = '{"text": {}}'""",
        """body = '{"buttons": []}'""",
        """body = '{"text": "x", "buttons": [7]}'""",
        """body = '{"text": "x", "files": [{"name": "a"}]}'""",
        "pieces = '{'",
        "pieces = '[{}]'",
    ],
)
async def test_a_slot_that_cannot_be_read_is_given_up_at_once_and_its_place_is_told(
    store: Store, caplog: pytest.LogCaptureFixture, damage: str
):
    await put(store, letter("broken", chat="1"), letter("sound", chat="2"), letter("next", chat="1"))
    await store.write(lambda tx: tx.run(f"UPDATE outbox SET {damage} WHERE key = 'broken'"))

    (other,) = await store.outbox.claim(CHANNELS)
    (after,) = await store.outbox.claim(CHANNELS)
    await store.outbox.complete(after, SlotState.SENT, SHOWN)
    (told,) = await store.outbox.claim(CHANNELS)

    assert (other.key, after.key, told.to) == ("sound", "next", after.to)
    assert told.content.text.startswith("I could not deliver a message here: its record is damaged.")
    (failed,) = await store.outbox.failed()
    assert (failed.key, failed.error) == ("broken", "its record is damaged")
    assert (await store.outbox.find("broken")) == failed
    assert not await store.write(lambda tx: store.outbox.answered(tx, "broken", "yes"))
    assert "cannot be read" in caplog.text
