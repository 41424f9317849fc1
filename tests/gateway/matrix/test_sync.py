import time

import pytest

from hermes_agent.gateway.channel import Part, Removed, Said
from hermes_agent.gateway.matrix.rooms import SHUT
from tests.gateway.matrix.hearing import ANN, ROOM, hearing, until


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

    assert removed.reason == f'{ANN} removed the agent from the room, saying "enough".'


@pytest.mark.parametrize(
    "odd",
    [
        {"rooms": []},
        {"rooms": {"join": [], "invite": "x", "leave": 5}},
        {"rooms": {"join": {ROOM: []}, "invite": {ROOM: {"invite_state": []}}, "leave": {ROOM: "x"}}},
        {"rooms": {"join": {ROOM: {"timeline": {"events": {}, "limited": True, "prev_batch": 5}}}}},
        {"rooms": {"join": {ROOM: {"state": {"events": ["x", 5, None, {}]}, "timeline": {"events": ["x", {}]}}}}},
        {"rooms": {"join": {ROOM: {"timeline": {"events": [{"type": ["m.room.message"], "content": 5}]}}}}},
        {
            "rooms": {
                "join": {
                    ROOM: {
                        "timeline": {
                            "events": [
                                {"type": "m.room.message", "origin_server_ts": "x", "sender": 5, "content": {}},
                                {"type": "m.room.message", "content": {"msgtype": "m.text", "body": ["x"]}},
                                {"type": "m.room.member", "state_key": ["x"], "content": {"membership": {}}},
                                {"type": "m.room.redaction", "redacts": {}},
                                {"type": "m.room.tombstone", "content": {"replacement_room": 5}},
                            ]
                        }
                    }
                }
            }
        },
        {"to_device": [], "device_lists": "x", "device_one_time_keys_count": []},
    ],
)
async def test_an_answer_that_is_odd_keeps_nobody_from_being_heard(tmp_path, odd):
    async with hearing(tmp_path) as at:
        await at.platform.say("before")
        async with at.listening():
            await at.until(Said)
            await at.settled()
            at.platform.odd.append({"next_batch": f"s{len(at.platform.stream)}", **odd})
            at.platform.odd.append({"next_batch": f"s{len(at.platform.stream)}", **odd})
            at.platform.more.set()
            await at.platform.say("words")
            await until(lambda: any(said.text == "words" for said in at.of(Said)))


@pytest.mark.parametrize("odd", [[], {}, {"next_batch": 5}, {"next_batch": ""}, "x"])
async def test_an_answer_without_a_place_takes_the_place_not_back(tmp_path, odd):
    async with hearing(tmp_path) as at:
        async with at.listening():
            await at.platform.say("one")
            await at.until(Said)
            await at.settled()
        at.platform.odd.append(odd)
        async with at.listening():
            await at.platform.say("two")
            await at.until(Said, 2)
            await at.settled()

    assert [said.text for said in at.of(Said)] == ["one", "two"]


async def test_a_room_of_ten_thousand_and_an_answer_with_a_thousand_rooms(tmp_path):
    async with hearing(tmp_path) as at:
        crowd = {f"@{number}:far.test": f"Person {number}" for number in range(10_000)}
        at.platform.room("!crowd:hermes.test", crowd)
        await at.platform.say("Hermes: hello", chat="!crowd:hermes.test", user="@5:far.test", name="Person 5")
        for number in range(1000):
            await at.platform.say(f"{number}", chat=f"!{number}:far.test")
        async with at.listening():
            said = await at.until(Said, 1001)
            crowded = next(each for each in said if each.where.chat == "!crowd:hermes.test")
            await at.channel.send(crowded.where, Part(text="Hello"), "k")

    assert (crowded.where.chat_kind, crowded.sender.name, crowded.text) == ("group", "Person 5", "hello")
    assert len(at.platform.chats.of("!crowd:hermes.test")) == 1


async def test_a_large_answer_is_taken_in(tmp_path):
    async with hearing(tmp_path) as at:
        async with at.listening():
            await at.platform.say("one")
            await at.until(Said)
            await at.settled()
        at.platform.limit = 2000
        for _ in range(200):
            await at.platform.say("x" * 60_000)
        async with at.listening():
            said = await at.until(Said, 201)

    assert sum(len(each.text) for each in said[1:]) == 12_000_000
