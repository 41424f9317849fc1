import time

from hermes_agent.gateway.heard import Invited, Removed, Said
from hermes_agent.gateway.matrix.crypto import SHUT
from hermes_agent.gateway.matrix.sync import INVITATIONS, Place
from tests.gateway.matrix.hearing import ANN, ROOM, hearing, until

STRANGER = "@mallory:hermes.test"


def test_a_place_is_read_as_it_was_written():
    place = Place(since="s1", invitations={"!1": "@x"}, told=["!2"])

    assert Place.read(place.written()) == place
    assert Place.read("") == Place.read("[]") == Place.read('{"since": 1}') == Place()


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
            at.platform.invite(ROOM, STRANGER)
            at.platform.invite("!gone:hermes.test", ANN)
            del at.platform.rooms["!gone:hermes.test"]
            await at.until(Invited, 2)
            await at.settled()
        assert at.platform.joins == []
        at.platform.stream[0] = ("invite", ROOM, at.platform.member("invite", STRANGER))
        async with at.listening():
            await at.until(Invited, 3)

    assert [invited.sender.user for invited in at.of(Invited)] == [STRANGER, ANN, STRANGER]


async def test_of_many_invitations_of_strangers_the_newest_are_kept(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("one")
        for number in range(INVITATIONS + 5):
            at.platform.invite(f"!{number}:far.test", STRANGER)
        await at.until(Invited, INVITATIONS + 5)
        await at.settled()
        await until(lambda: f"!{INVITATIONS + 4}:far.test" in str(at.needs.kept.texts))

    kept = str(at.needs.kept.texts)
    assert kept.count(STRANGER) == INVITATIONS
    assert "!4:far.test" not in kept


async def test_a_new_process_goes_on_behind_what_the_last_one_took_in(tmp_path):
    async with hearing(tmp_path) as at:
        async with at.listening():
            await at.platform.say("one")
            await at.until(Said)
            await at.settled()
        await at.platform.say("two")
        async with at.listening():
            await at.until(Said, 2)
            await at.settled()

    assert [said.text for said in at.of(Said)] == ["one", "two"]


async def test_what_one_answer_has_no_room_for_is_asked_for(tmp_path):
    async with hearing(tmp_path) as at:
        async with at.listening():
            await at.platform.say("first")
            await at.until(Said)
            await at.settled()
        for number in range(230):
            await at.platform.say(f"{number}")
        async with at.listening():
            await at.until(Said, 231)

    assert [said.text for said in at.of(Said)][1:] == [f"{number}" for number in range(230)]


async def test_so_much_that_nobody_reads_it_is_cut(tmp_path, caplog):
    async with hearing(tmp_path) as at:
        async with at.listening():
            await at.platform.say("first")
            await at.until(Said)
            await at.settled()
        at.platform.page = 1
        for number in range(90):
            await at.platform.say(f"{number}")
        async with at.listening():
            await at.until(Said, 71)

    assert at.of(Said)[1].text == "20"
    assert "were missed" in caplog.text


async def test_what_is_old_when_it_begins_is_not_answered(tmp_path):
    async with hearing(tmp_path) as at:
        at.platform.room(ROOM, {ANN: "Ann"})
        content = {"msgtype": "m.text", "body": "old"}
        at.platform.happens(ROOM, "m.room.message", content, ANN, origin_server_ts=int((time.time() - 900) * 1000))
        await at.platform.say("new")
        async with at.listening():
            await at.until(Said)
            await at.settled()

    assert [said.text for said in at.of(Said)] == ["new"]


async def test_what_was_said_before_it_was_asked_in_is_not_answered(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        at.platform.room("!0:hermes.test", {})
        await at.platform.say("begin", chat="!0:hermes.test")
        await at.until(Said)
        at.platform.room(ROOM, {ANN: "Ann"})
        asked = [
            ("m.room.create", {}, {"state_key": ""}),
            ("m.room.message", {"msgtype": "m.text", "body": "before"}, {}),
            ("m.room.member", {"membership": "invite"}, {"state_key": "@hermes:hermes.test"}),
            ("m.room.message", {"msgtype": "m.text", "body": "after"}, {}),
        ]
        for kind, content, more in asked:
            at.platform.happens(ROOM, kind, content, ANN, **more)
        await at.until(Said, 2)

    assert [said.text for said in at.of(Said)] == ["begin", "after"]


async def test_a_room_that_cannot_be_read_is_told_so_once(tmp_path):
    async with hearing(tmp_path) as at:
        async with at.listening():
            await at.platform.say("hello")
            await at.until(Said)
            for _ in range(2):
                at.platform.happens(ROOM, "m.room.encrypted", {"ciphertext": "x"}, ANN)
                await at.settled()
        async with at.listening():
            at.platform.happens(ROOM, "m.room.encrypted", {"ciphertext": "x"}, ANN)
            await at.settled()

    assert [shown.text for shown in at.platform.chats.of(ROOM)] == [SHUT]


async def test_a_farewell_is_told_with_its_reason(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("hello")
        await at.until(Said)
        at.platform.kick(ROOM, ANN, "enough")
        (removed,) = await at.until(Removed)

    assert removed.reason == f"{ANN} removed the agent from the room: enough"
