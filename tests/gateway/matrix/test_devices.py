"""People's devices: asked for in pieces, given keys once, and again when somebody comes."""

import nio
import pytest
from nio.store import SqliteMemoryStore

from hermes_agent.core.inbound import Conversation
from hermes_agent.gateway.channel import Part
from hermes_agent.gateway.heard import Said
from hermes_agent.gateway.matrix.devices import ASKED
from hermes_agent.testing.doubles.matrix import SERVER
from tests.gateway.matrix.hearing import ROOM, Hearing, hearing

TO = Conversation(platform="matrix", chat=ROOM)


@pytest.fixture
async def at(tmp_path):
    async with hearing(tmp_path, encryption="yes") as made, made.listening():
        await made.platform.say("in the clear")
        await made.until(Said)
        await made.settled()
        made.platform.rooms[ROOM].encrypted = True
        made.channel._rooms._encrypted.clear()
        made.channel._rooms.forget(ROOM)
        yield made


def has_device(at: Hearing, user: str) -> None:
    """Somebody has a device in the room."""
    olm = nio.crypto.Olm(user, "A", SqliteMemoryStore(user, "A"))
    shared = olm.share_keys()
    at.platform.keys.setdefault("device_keys", {})[user] = {"A": shared["device_keys"]}
    (name, key), *_ = shared["one_time_keys"].items()
    at.platform.one_time[user] = {"A": {name: key}}
    at.platform.rooms[ROOM].people[user] = user
    at.channel._rooms.forget(ROOM)


async def test_a_crowd_is_asked_for_in_pieces(at: Hearing):
    at.platform.rooms[ROOM].people |= {f"@{number}:{SERVER}": "" for number in range(600)}
    await at.channel.send(TO, Part(text="hello"), "k1")

    asked = [count for count in at.platform.asked if count > 1]
    assert sum(asked) >= 600
    assert max(asked) <= ASKED


async def test_each_device_is_given_the_key_once_and_who_comes_later_another(at: Hearing):
    has_device(at, "@bob:hermes.test")
    await at.channel.send(TO, Part(text="one"), "k1")
    await at.channel.send(TO, Part(text="two"), "k2")
    assert [set(messages) for _, messages in at.platform.direct] == [{"@bob:hermes.test"}]

    has_device(at, "@eve:hermes.test")
    await at.channel.send(TO, Part(text="three"), "k3")
    given = {user for _, messages in at.platform.direct[1:] for user in messages}
    assert given == {"@bob:hermes.test", "@eve:hermes.test"}
    sessions = [
        event["content"]["session_id"]
        for event in at.platform.rooms[ROOM].events.values()
        if event["type"] == "m.room.encrypted"
    ]
    assert len(set(sessions)) == 2
    assert sessions[0] == sessions[1]


async def test_a_device_without_keys_left_is_passed_over(at: Hearing):
    has_device(at, "@bob:hermes.test")
    at.platform.one_time.clear()
    await at.channel.send(TO, Part(text="one"), "k1")

    assert at.platform.direct == []


async def test_whose_server_does_not_answer_is_not_asked_for_with_every_sync(at: Hearing):
    at.platform.rooms[ROOM].people["@bob:far.test"] = "Bob"
    await at.channel.send(TO, Part(text="one"), "k1")
    before = len(at.platform.asked)
    for number in range(3):
        await at.platform.say(f"{number}", chat="!2:hermes.test")
    await at.until(Said, 4)
    await at.settled()

    assert len(at.platform.asked) == before
    await at.channel.send(TO, Part(text="two"), "k2")
    assert len(at.platform.asked) == before + 1
