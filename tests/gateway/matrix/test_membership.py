"""Into which rooms the agent goes, and which it leaves."""

from dataclasses import replace

import pytest

from hermes_agent.core.chat import Conversation
from hermes_agent.gateway.channel import STRANGER, Invited, NeverHere, NotNow, Part, Removed, Said
from hermes_agent.gateway.channels.matrix import CHANNEL
from hermes_agent.gateway.matrix.membership import (
    INVITATIONS,
    LOOK_SECONDS,
    STRANGER_SECONDS,
    UNREAD,
    Membership,
    Place,
    Places,
)
from hermes_agent.gateway.matrix.rooms import Rooms
from hermes_agent.testing.clock import FakeClock
from hermes_agent.testing.platform import Trouble
from tests.contracts.channels import needs
from tests.gateway.matrix.hearing import ANN, GROUP, ROOM, Hearing, hearing, until

MALLORY, BOB = "@mallory:hermes.test", "@bob:hermes.test"
NEW, NEWER = "!2:hermes.test", "!3:hermes.test"


async def test_an_invitation_of_somebody_known_is_taken(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        at.platform.invite(ROOM, ANN)
        (invited,) = await at.until(Invited)
        await at.settled()
        await at.platform.say("hello")
        await at.until(Said)

    assert (invited.where.chat_kind, invited.sender.user) == ("dm", ANN)
    assert at.platform.joins == [ROOM]


async def test_an_invitation_of_a_stranger_waits_and_is_looked_at_again_later(tmp_path):
    async with hearing(tmp_path) as at:
        async with at.listening():
            at.platform.invite(ROOM, MALLORY)
            at.platform.invite("!gone:hermes.test", ANN)
            del at.platform.rooms["!gone:hermes.test"]
            await at.until(Invited, 2)
            await at.settled()
        assert at.platform.joins == []
        at.platform.stream[0] = ("invite", ROOM, at.platform.member("invite", MALLORY))
        async with at.listening():
            await at.until(Invited, 3)

    assert [invited.sender.user for invited in at.of(Invited)] == [MALLORY, ANN, MALLORY]


async def test_of_many_invitations_of_strangers_the_newest_are_kept(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("one")
        for number in range(INVITATIONS + 5):
            at.platform.invite(f"!{number}:far.test", MALLORY)
        await at.until(Invited, INVITATIONS + 5)
        await at.settled()
        await until(lambda: f"!{INVITATIONS + 4}:far.test" in str(at.needs.kept.texts))

    kept = str(at.needs.kept.texts)
    assert kept.count(MALLORY) == INVITATIONS
    assert "!4:far.test" not in kept


async def test_with_a_stranger_it_speaks_alone(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        at.words[MALLORY] = STRANGER
        at.platform.invite(ROOM, MALLORY)
        await until(lambda: at.platform.joins == [ROOM])
        await at.platform.say("hello", user=MALLORY)
        (said,) = await at.until(Said)
        at.platform.rooms[ROOM].people[BOB] = "Bob"
        at.platform.happens(ROOM, "m.room.member", {"membership": "join"}, BOB, state_key=BOB)
        await until(lambda: at.platform.leaves == [ROOM])

    assert said.where.chat_kind == "dm"
    assert at.of(Removed) == []


async def test_a_stranger_who_is_not_alone_is_left_at_once(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        at.words[MALLORY] = STRANGER
        at.platform.invite(ROOM, MALLORY)
        at.platform.rooms[ROOM].people[BOB] = "Bob"
        await until(lambda: at.platform.leaves == [ROOM])


def later(at: Hearing, clock: FakeClock) -> None:
    """Be another process, by that clock."""
    at.needs = replace(at.needs, clock=clock)
    at.channel = CHANNEL.make(at.needs)


async def test_a_stranger_whom_nobody_lets_in_is_left_and_one_who_is_let_in_is_not(tmp_path):
    async with hearing(tmp_path) as at:
        at.words[MALLORY] = at.words[BOB] = STRANGER
        clock = FakeClock(at.platform.clock.now())
        later(at, clock)
        async with at.listening():
            at.platform.invite(ROOM, MALLORY)
            at.platform.invite(NEW, BOB)
            await until(lambda: len(at.platform.joins) == 2)
            await at.settled()
        at.words[BOB] = "member"
        await clock.advance(LOOK_SECONDS + 1)
        async with at.listening():
            await at.until(Invited, 4)
            await at.platform.say("hello", chat=NEW, user=BOB)
            await at.until(Said)
            await at.settled()
        assert at.platform.leaves == []
        await clock.advance(STRANGER_SECONDS)
        async with at.listening():
            await until(lambda: bool(at.platform.leaves))

    assert at.platform.leaves == [ROOM]


async def test_a_room_that_was_replaced_goes_on_as_the_same_chat(tmp_path):
    async with hearing(tmp_path) as at:
        async with at.listening():
            await at.platform.say("one", chat=GROUP, group=True)
            await at.until(Said)
            at.platform.replace(GROUP, NEW, ANN)
            await until(lambda: at.platform.leaves == [GROUP])
            await at.platform.say("two", chat=NEW)
            _, two = await at.until(Said, 2)
            await at.channel.send(two.where, Part(text="here"), "k1")
            await at.settled()
        at.channel = CHANNEL.make(at.needs)
        async with at.listening():
            at.platform.replace(NEW, NEWER, ANN)
            await until(lambda: at.platform.leaves == [GROUP, NEW])
            await at.channel.send(two.where, Part(text="and here"), "k2")
            await at.channel.typing(two.where)

    assert two.where == Conversation(platform="matrix", chat_kind="group", chat=GROUP)
    assert [shown.text for shown in at.platform.chats.of(NEW)] == ["here"]
    assert [shown.text for shown in at.platform.chats.of(NEWER)] == ["and here"]
    assert at.platform.chats.typing == [NEWER]
    assert at.of(Removed) == []


async def test_a_replaced_room_into_which_it_is_invited_goes_on_too(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("one", chat=GROUP, group=True)
        at.platform.replace(GROUP, NEW, ANN, closed=True)
        (removed,) = await at.until(Removed)
        at.platform.rooms[NEW].closed = False
        at.platform.tell("invite", NEW, at.platform.member("invite", ANN))
        await until(lambda: at.platform.joins == [NEW])
        await at.platform.say("two", chat=NEW)
        _, two = await at.until(Said, 2)

    assert removed.reason == f"the room was replaced by {NEW}; invite me there."
    assert two.where.chat == GROUP


async def test_nobody_whom_it_does_not_know_leads_it_elsewhere(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("one", chat=GROUP, group=True)
        at.platform.replace(GROUP, NEW, MALLORY)
        await at.until(Removed)

    assert at.platform.joins == []


async def test_a_room_that_says_of_itself_that_it_replaces_another_is_a_room_of_its_own(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("one", chat=GROUP, group=True)
        at.platform.invite(NEW, ANN, direct=False)
        at.platform.rooms[NEW].state["m.room.create"] = {"predecessor": {"room_id": GROUP}}
        await until(lambda: at.platform.joins == [NEW])
        await at.platform.say("two", chat=NEW)
        _, two = await at.until(Said, 2)

    assert two.where.chat == NEW


async def test_a_room_that_does_not_say_that_it_replaces_another_is_left_again(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("one", chat=GROUP, group=True)
        at.platform.replace(GROUP, NEW, ANN)
        at.platform.rooms[NEW].state.clear()
        await at.until(Removed)

    assert (at.platform.joins, at.platform.leaves) == ([NEW], [NEW])


async def test_a_room_whose_server_does_not_answer_keeps_nobody_else_from_being_heard(tmp_path):
    async with hearing(tmp_path) as at:
        async with at.listening():
            at.platform.chats.order(Trouble.BROKEN, "join")
            at.platform.invite(ROOM, ANN)
            await at.platform.say("words", chat=NEW)
            await at.until(Said)
            await at.settled()
        assert at.platform.joins == []
        async with at.listening():
            await until(lambda: at.platform.joins == [ROOM])


class Busy:
    """A homeserver on which three are in the room, and which lets nobody leave at first."""

    def __init__(self) -> None:
        self.left = 0

    async def call(self, _: str, path: str, *__, **___) -> dict:
        if path.endswith("leave"):
            self.left += 1
            if self.left == 1:
                raise NotNow("Too many requests.")
        return {"joined": {"@hermes:x": {}, "@eve:x": {}, "@bob:x": {}}}


async def test_a_room_of_a_stranger_that_cannot_be_left_yet_is_left_later():
    homeserver, place = Busy(), Place(strangers={"!r:x": ("@eve:x", 0.0)})
    rooms = Rooms(homeserver)  # type: ignore[arg-type]  # as much of a client as is asked
    entering = Membership(client=homeserver, rooms=rooms, moves=None, places=None, now=lambda: 1.0)  # type: ignore[arg-type]  # as much of a client as is asked

    async def strange(_: object) -> str:
        return ""

    await entering.crowded("!r:x", place)
    assert place.strangers
    await entering.again(place, strange)

    assert homeserver.left == 2
    assert not place.strangers


class Death(BaseException):
    """The process is killed."""


class Deadly:
    """A homeserver on which the way into a room is the last thing that is done, `error`; somebody else is there too."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.left: list[str] = []

    async def call(self, _: str, path: str, *__, **___) -> dict:
        if path.startswith("join"):
            raise self.error
        if path.endswith("leave"):
            self.left.append(path)
        return {"joined": {"@hermes:x": {}, "@eve:x": {}, "@bob:x": {}}}


async def word(_: object) -> str:
    return STRANGER


def process(homeserver: Deadly, places: Places) -> Membership:
    rooms = Rooms(homeserver)  # type: ignore[arg-type]  # as much of a client as is asked
    return Membership(client=homeserver, rooms=rooms, moves=None, places=places, now=lambda: 1.0)  # type: ignore[arg-type]  # as much of a client as is asked


async def test_that_a_room_is_a_strangers_outlasts_a_death_on_the_way_into_it(tmp_path):
    homeserver, kept = Deadly(Death()), needs(tmp_path).kept
    with pytest.raises(Death):
        await process(homeserver, Places(kept, "x")).invited("!r:x", "@eve:x", Place(since="s1"), word, direct=True)

    place = await Places(kept, "x").begin()
    await process(homeserver, Places(kept, "x")).crowded("!r:x", place)

    assert (place.since, homeserver.left) == ("s1", ["rooms/%21r%3Ax/leave"])


async def test_an_invitation_of_a_stranger_whose_server_does_not_answer_is_tried_again_and_not_refused(tmp_path):
    homeserver, place = Deadly(NotNow("no answer")), Place()
    entering = process(homeserver, Places(needs(tmp_path).kept, "x"))
    await entering.invited("!r:x", "@eve:x", place, word, direct=True)
    await entering.again(place, word)

    assert (list(place.invitations), homeserver.left) == (["!r:x"], [])


async def test_a_strangers_room_that_cannot_be_entered_is_none_of_them(tmp_path):
    place = Place()
    entering = process(Deadly(NeverHere("no")), Places(needs(tmp_path).kept, "x"))
    await entering.invited("!r:x", "@eve:x", place, word, direct=True)

    assert (place.invitations, place.strangers) == ({}, {})


def test_a_place_is_read_as_it_was_written():
    place = Place(since="s1", told=["!2"])
    place.invite("!1", "@x", direct=True)
    place.strangers["!3"] = ("@y", 5.0)
    place.wait("$1", "!2", 7.0)

    assert Place.read(place.written()) == place


@pytest.mark.parametrize("written", ["", "[]", "x", '{"since": 1, "told": 5, "unread": [], "invitations": {"!1": 5}}'])
def test_what_is_none_has_not_begun(written):
    assert Place.read(written) == Place()


def test_what_anybody_may_add_to_is_bounded():
    place = Place()
    for number in range(INVITATIONS + 5):
        place.invite(f"!{number}", "@x", direct=False)
        place.wait(f"${number}", "!1", 0.0)

    assert next(iter(place.invitations)) == "!5"
    assert (len(place.invitations), len(place.unread)) == (INVITATIONS, UNREAD)
