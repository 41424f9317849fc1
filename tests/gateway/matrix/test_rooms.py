import asyncio

import pytest

from hermes_agent.gateway.channel import NeverHere
from hermes_agent.gateway.inbound_events import Pressed, Said
from hermes_agent.gateway.matrix.rooms import PEOPLE_KNOWN, Crypto, Known, Rooms, thread_of
from tests.doubles.matrix import OWN, Room
from tests.gateway.matrix.hearing import ANN, ROOM, hearing


def member(user: str, membership: str) -> dict:
    return {"type": "m.room.member", "state_key": user, "content": {"membership": membership, "displayname": "Bob"}}


async def test_who_comes_and_goes_makes_a_group_and_a_chat_with_one(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        rooms: Rooms = at.channel._rooms
        await at.platform.say("one")
        await at.until(Said)
        assert await rooms.alone(ROOM)
        rooms.changed(ROOM, member("@bob:x", "join"))
        assert not await rooms.alone(ROOM)
        assert (await rooms.people(ROOM))["@bob:x"] == "Bob"
        rooms.changed(ROOM, member("@bob:x", "leave"))
        assert await rooms.alone(ROOM)
        rooms.changed("!other:x", member("@bob:x", "join"))
        assert not await rooms.encrypted(ROOM)
        rooms.changed(ROOM, {"type": "m.room.encryption", "content": {}})
        assert await rooms.encrypted(ROOM)


async def test_a_room_of_which_nobody_says_who_is_in_it_is_no_chat_with_one(tmp_path):
    async with hearing(tmp_path) as at:
        at.platform.refusal = (403, "M_FORBIDDEN")
        assert not await at.channel._rooms.alone(ROOM)


async def test_a_message_of_an_earlier_process_is_asked_for(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("one")
        await at.until(Said)
        content = {"msgtype": "m.text", "body": "May I?", "hermes.slot": 3, "m.relates_to": {"rel_type": "m.thread"}}
        first = at.platform.happens(ROOM, "m.room.message", content, OWN)
        newer = {"m.relations": {"m.replace": {"content": {"m.new_content": {"hermes.slot": 8}}}}}
        second = at.platform.happens(ROOM, "m.room.message", content, OWN, unsigned=newer)
        rooms: Rooms = at.channel._rooms
        assert await rooms.message(ROOM, first) == Known(user=OWN, mine=True, slot=3)
        assert (await rooms.message(ROOM, second)).slot == 8

        for message in (first, second):
            relation = {"rel_type": "m.annotation", "event_id": message, "key": "2\u20e3"}
            at.platform.happens(ROOM, "m.reaction", {"m.relates_to": relation}, ANN)
        pressed = await at.until(Pressed, 2)

    assert [(each.slot, each.choice) for each in pressed] == [(3, 1), (8, 1)]


async def test_only_so_much_is_remembered(tmp_path):
    async with hearing(tmp_path) as at:
        rooms: Rooms = at.channel._rooms
        for number in range(6000):
            rooms.know(str(number), Known())
            rooms.redacted(str(number))

        assert (len(rooms._messages._kept), len(rooms.gone._kept)) == (5000, 5000)


async def test_a_room_of_which_nobody_says_whether_it_is_encrypted_is_not_taken_for_an_open_one(tmp_path):
    async with hearing(tmp_path) as at:
        rooms: Rooms = at.channel._rooms
        at.platform.refusal = (403, "M_FORBIDDEN")
        with pytest.raises(NeverHere):
            await rooms.encrypted(ROOM)
        at.platform.refusal, at.platform.rooms[ROOM] = None, Room(encrypted=True)

        assert await rooms.encrypted(ROOM)


async def test_a_crowd_of_rooms_is_not_kept(tmp_path):
    async with hearing(tmp_path) as at:
        rooms: Rooms = at.channel._rooms
        for number in range(3):
            crowd = {f"@{each}:x": "" for each in range(PEOPLE_KNOWN // 2)}
            at.platform.room(f"!{number}:x", crowd)
            await rooms.people(f"!{number}:x")

        assert len(rooms._people) == 1


def test_a_relation_of_another_kind_is_no_thread():
    assert thread_of({"rel_type": "m.replace", "event_id": "$1"}) == ""
    assert thread_of({"rel_type": "m.thread", "event_id": 5}) == ""


class Slow:
    """A homeserver whose answer was true when it was made."""

    def __init__(self) -> None:
        self.asked = 0
        self.members = {OWN: {}, "@ann:x": {}, "@bob:x": {}}
        self.go = asyncio.Event()

    async def call(self, *_, **__) -> dict:
        self.asked += 1
        answer = {"joined": dict(self.members)}
        await self.go.wait()
        return answer


async def test_who_is_removed_while_the_homeserver_answers_is_given_no_keys():
    homeserver = Slow()
    rooms = Rooms(homeserver)  # type: ignore[arg-type]  # as much of a client as is asked
    asking = asyncio.ensure_future(rooms.people(ROOM))
    while not homeserver.asked:
        await asyncio.sleep(0)

    del homeserver.members["@bob:x"]
    rooms.changed(ROOM, member("@bob:x", "ban"))
    homeserver.go.set()

    assert "@bob:x" not in await asking
    assert "@bob:x" not in await rooms.people(ROOM)


async def test_a_room_is_called_what_it_is_called_last(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        rooms: Rooms = at.channel._rooms
        assert await rooms.title(ROOM) == ""
        await at.platform.say("one", group=True)
        at.platform.happens(ROOM, "m.room.name", {"name": "Parties"}, ANN, state_key="")
        await at.platform.say("two", group=True)
        await at.until(Said, 2)
        assert await rooms.title(ROOM) == "Parties"
        assert [said.title for said in at.of(Said)][1] == "Parties"


async def test_without_encryption_nothing_is_read_and_nothing_goes_out_in_the_clear():
    shut = Crypto()
    await shut.begin("@x:y", "D")
    await shut.synced({})

    shut.verify({}, shut.begin)
    assert await shut.read("!1", {}) is None
    assert "matrix-e2ee" in shut.excuse
    with pytest.raises(NeverHere, match="encrypt"):
        await shut.write("!1", "m.room.message", {})
    with pytest.raises(NeverHere, match="encrypt"):
        shut.lock(b"")
    with pytest.raises(NeverHere, match="encrypt"):
        shut.unlock(b"", {})
    await shut.close()
