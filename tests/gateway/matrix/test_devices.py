"""People's devices: asked for in pieces, given keys once, and again when somebody comes."""

import asyncio
from contextlib import AbstractAsyncContextManager

import nio
import pytest
from nio.store import SqliteMemoryStore

from hermes_agent.core.chat import Conversation
from hermes_agent.gateway.channel import NotNow, Part, Said
from hermes_agent.gateway.matrix.devices import ASKED
from tests.doubles.matrix import SERVER
from tests.gateway.matrix.hearing import ROOM, Hearing, hearing, until
from tests.gateway.matrix.synapse import AtOnce

TO = Conversation(platform="matrix", chat=ROOM)
ADA, MALLORY, BOB, FAR = "@ada:far.test", "@mallory:far.test", "@bob:hermes.test", "!2:hermes.test"
ELSEWHERE = Conversation(platform="matrix", chat=FAR)


def listening_at_once(at: Hearing) -> AbstractAsyncContextManager[None]:
    at.channel._crypto._thread = AtOnce()
    return at.listening()


@pytest.fixture
async def at(tmp_path):
    async with hearing(tmp_path, encryption="yes") as made, listening_at_once(made):
        await made.platform.say("in the clear")
        await made.until(Said)
        await made.settled()
        made.platform.rooms[ROOM].encrypted = True
        made.channel._rooms._encrypted.clear()
        made.channel._rooms.forget(ROOM)
        yield made
        made.platform.spoken.set()


def has_device(at: Hearing, user: str, room: str = ROOM, device: str = "A") -> None:
    """Somebody has a device, and is in the room."""
    store = SqliteMemoryStore(user, device)
    shared = nio.crypto.Olm(user, device, store).share_keys()
    store.database.close()
    at.platform.keys.setdefault("device_keys", {}).setdefault(user, {})[device] = shared["device_keys"]
    (name, key), *_ = shared["one_time_keys"].items()
    at.platform.one_time.setdefault(user, {})[device] = {name: key}
    at.platform.room(room, {}).people[user] = user
    at.platform.rooms[room].encrypted = True
    at.channel._rooms.forget(room)


def given(at: Hearing) -> list[tuple[str, str]]:
    """Which devices were given keys, in this order."""
    return [(user, device) for _, to in at.platform.direct for user, devices in to.items() for device in devices]


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


async def sending_where_a_server_is_silent(at: Hearing, about: str) -> asyncio.Task[str]:
    """Write into a room with somebody of whose devices, or of whose keys, another server says nothing."""
    has_device(at, MALLORY, FAR)
    at.platform.room(FAR, {}).people[BOB] = "Bob"
    if about == "keys":
        await at.channel._crypto._devices.query([MALLORY])
    at.platform.silent.add(MALLORY)
    before = len(at.platform.asked)
    sending = asyncio.create_task(at.channel.send(ELSEWHERE, Part(text="hello"), "k9"))
    await until(lambda: len(at.platform.asked) > before)
    return sending


@pytest.mark.parametrize("about", ["devices", "keys"])
async def test_a_member_whose_server_is_silent_holds_up_what_is_said_in_no_other_room(at: Hearing, about: str):
    sending = await sending_where_a_server_is_silent(at, about)
    has_device(at, "@eve:hermes.test")
    await at.platform.say("words")
    await at.until(Said, 2)
    await at.channel.send(TO, Part(text="an answer"), "k1")
    assert (given(at), sending.done()) == ([("@eve:hermes.test", "A")], False)

    at.platform.spoken.set()
    await sending
    assert given(at)[1:] == [(MALLORY, "A")]


async def test_a_query_that_lasts_holds_up_nothing_that_is_heard(at: Hearing):
    has_device(at, MALLORY, FAR)
    await at.channel.send(ELSEWHERE, Part(text="hello"), "k1")
    at.platform.silent.add(MALLORY)
    before = len(at.platform.asked)
    for number in range(3):
        at.platform.changed.append(MALLORY)
        await at.platform.say(f"{number}")
        await at.until(Said, 2 + number)
        await at.settled()

    assert len(at.platform.asked) == before + 1


async def test_who_gets_another_device_while_asked_about_is_asked_about_again(at: Hearing):
    has_device(at, BOB, FAR)
    at.platform.silent.add(BOB)
    sending = asyncio.create_task(at.channel.send(ELSEWHERE, Part(text="hello"), "k1"))
    await until(lambda: at.platform.asked[-1:] == [2])
    has_device(at, BOB, FAR, "B")
    at.platform.changed.append(BOB)
    await at.platform.say("words")
    await at.until(Said, 2)
    at.platform.spoken.set()
    await sending
    await at.channel.send(ELSEWHERE, Part(text="more"), "k2")

    assert given(at) == [(BOB, "A"), (BOB, "A"), (BOB, "B")]


async def test_an_answer_that_comes_after_a_newer_one_takes_no_device_away(at: Hearing):
    devices = at.channel._crypto._devices
    has_device(at, BOB)
    at.platform.silent.add(BOB)
    late = asyncio.create_task(devices.query([BOB]))
    await until(lambda: at.platform.asked[-1:] == [1])
    at.platform.silent.clear()
    has_device(at, BOB, device="B")
    at.platform.changed.append(BOB)
    await at.platform.say("words")
    await at.until(Said, 2)
    await devices.query([BOB])
    at.platform.spoken.set()
    await late

    assert {each.id for each in devices.olm.device_store.active_user_devices(BOB)} == {"A", "B"}


async def test_a_device_whose_server_gave_no_key_is_given_what_is_written_when_it_does(at: Hearing):
    has_device(at, MALLORY)
    at.platform.failing.add("far.test")
    await at.channel.send(TO, Part(text="one"), "k1")
    assert given(at) == []

    at.platform.failing.clear()
    await at.channel.send(TO, Part(text="two"), "k2")
    assert given(at) == [(MALLORY, "A")]


async def test_a_session_that_broke_is_begun_anew_beside_what_is_heard(at: Hearing):
    has_device(at, MALLORY)
    await at.channel.send(TO, Part(text="one"), "k1")
    olm = at.channel._crypto._olm
    (device,) = olm.device_store.active_user_devices(MALLORY)
    at.platform.silent.add(MALLORY)
    olm.wedged_devices.append(device)
    for number in range(2):
        await at.platform.say(f"{number}")
        await at.until(Said, 2 + number)
    at.platform.spoken.set()
    await until(lambda: len(given(at)) == 2)

    assert (given(at), olm.wedged_devices) == ([(MALLORY, "A")] * 2, [])


async def test_who_writes_while_the_channel_ends_is_told_that_it_did(at: Hearing):
    sending = await sending_where_a_server_is_silent(at, "devices")
    await at.channel.close()
    at.platform.spoken.set()

    with pytest.raises(NotNow):
        await sending


ODD_DEVICES = [5, {"A": 5}, {"A": {}}, {"keys": {"ed25519:A": "x", "curve25519:A": "x"}}, {"unsigned": 5}]


@pytest.mark.parametrize("odd", ODD_DEVICES)
async def test_what_one_says_of_their_devices_keeps_nobody_else_from_reading(at: Hearing, odd: object):
    has_device(at, ADA)
    devices = at.platform.keys["device_keys"]
    devices[ADA] = {"A": {**devices[ADA]["A"], **odd}} if isinstance(odd, dict) and "A" not in odd else odd
    has_device(at, BOB)
    await at.channel.send(TO, Part(text="hello"), "k1")

    assert given(at) == [(BOB, "A")]


@pytest.mark.parametrize("odd", [{}, {"signed_curve25519:A": 5}, {"signed_curve25519:A": {"key": 5, "signatures": 5}}])
async def test_a_key_that_is_none_keeps_nobody_else_from_reading(at: Hearing, odd: dict):
    has_device(at, ADA)
    at.platform.one_time[ADA] = {"A": odd}
    has_device(at, BOB)
    async with asyncio.timeout(5):
        await at.channel.send(TO, Part(text="hello"), "k1")

    assert given(at) == [(BOB, "A")]
