"""People who verify the agent's device are answered, and whoever says they do keeps nobody waiting."""

import nio
import pytest
from nio.store import SqliteMemoryStore

from hermes_agent.core.inbound import Conversation
from hermes_agent.gateway.channel import Part
from hermes_agent.gateway.inbound_events import Said
from hermes_agent.gateway.matrix.verification_replies import EACH, MINUTE, OTHERS, STRANGERS, Limits
from hermes_agent.gateway.matrix.verifying import PREFIX
from hermes_agent.testing.clock import FakeClock
from tests.doubles.matrix import OWN
from tests.gateway.matrix.hearing import ANN, ROOM, Hearing, hearing, until

TO = Conversation(platform="matrix", chat=ROOM)
MALLORY = "@mallory:far.test"
ABLE = {
    "method": "m.sas.v1",
    "key_agreement_protocols": ["curve25519-hkdf-sha256"],
    "hashes": ["sha256"],
    "message_authentication_codes": ["hkdf-hmac-sha256.v2"],
    "short_authentication_string": ["emoji"],
}


@pytest.fixture
async def at(tmp_path):
    async with hearing(tmp_path, encryption="yes") as made, made.listening():
        made.platform.room(ROOM, {MALLORY: "Mallory"})
        await made.platform.say("in the clear")
        await made.until(Said)
        await made.settled()
        made.platform.asked.clear()
        yield made
        made.platform.spoken.set()


def sends(at: Hearing, kind: str, mark: str, user: str = ANN, **more: object) -> None:
    """Somebody writes from device to device."""
    content = {"transaction_id": mark, "from_device": "A", **ABLE, **more}
    at.platform.to_device.append({"type": f"{PREFIX}{kind}", "sender": user, "content": content})
    at.platform.more.set()


def says(at: Hearing, mark: str, user: str = ANN) -> None:
    """Somebody begins in the room."""
    relation = {"rel_type": "m.reference", "event_id": mark}
    at.platform.happens(ROOM, f"{PREFIX}start", {"from_device": "A", **ABLE, "m.relates_to": relation}, user)


def has_device(at: Hearing, user: str) -> dict:
    olm = nio.crypto.Olm(user, "A", SqliteMemoryStore(user, "A"))
    keys: dict = olm.share_keys()["device_keys"]
    at.platform.keys.setdefault("device_keys", {})[user] = {"A": keys}
    return keys


def answers(at: Hearing) -> list[tuple[str, dict]]:
    """What was answered from device to device."""
    found = [(kind, content) for kind, to in at.platform.direct for each in to.values() for content in each.values()]
    return [(kind.removeprefix(PREFIX), content) for kind, content in found]


def shown(at: Hearing) -> list[str]:
    """What was answered in the room."""
    events = [event for event in at.platform.rooms[ROOM].events.values() if event["sender"] == OWN]
    return [event["type"].removeprefix(PREFIX) for event in events if event["type"].startswith(PREFIX)]


@pytest.mark.parametrize("in_room", [True, False])
async def test_a_server_that_says_nothing_of_its_people_keeps_nobody_waiting(at: Hearing, in_room: bool):
    at.platform.silent.add(MALLORY)
    says(at, "$1", MALLORY) if in_room else sends(at, "start", "t1", MALLORY)
    await until(lambda: bool(at.platform.asked))
    at.platform.rooms[ROOM].people.pop(MALLORY)
    at.channel._rooms.forget(ROOM)
    at.platform.rooms[ROOM].encrypted = True
    at.channel._rooms._encrypted.clear()
    await at.platform.say("words")
    await at.until(Said, 2)
    receipt = await at.channel.send(TO, Part(text="A secret"), "k1")

    assert at.platform.rooms[ROOM].events[receipt]["type"] == "m.room.encrypted"


async def test_keys_are_asked_for_where_a_verification_begins_alone(at: Hearing):
    sends(at, "request", "t1")
    sends(at, "key", "t1")
    sends(at, "done", "t1")
    sends(at, "request", "t2")
    await until(lambda: len(answers(at)) == 2)

    assert at.platform.asked == []


@pytest.mark.parametrize("in_room", [True, False])
async def test_the_device_of_who_begins_is_asked_for_and_its_key_taken(at: Hearing, in_room: bool):
    has_device(at, ANN)
    says(at, "$1") if in_room else sends(at, "start", "t1")
    await until(lambda: bool(shown(at) or answers(at)))

    assert (shown(at) or [kind for kind, _ in answers(at)]) == ["accept"]
    assert at.platform.asked == [1]


async def test_the_key_of_a_device_that_is_known_is_not_asked_for(at: Hearing):
    has_device(at, ANN)
    await at.channel._crypto._devices.know([ANN])
    at.platform.asked.clear()
    sends(at, "start", "t1")
    await until(lambda: bool(answers(at)))

    assert ([kind for kind, _ in answers(at)], at.platform.asked) == (["accept"], [])


@pytest.mark.parametrize("wrong", [{"user_id": MALLORY}, {"keys": {"ed25519:A": "x"}}, {"keys": 5}, {"signatures": 5}])
async def test_a_key_that_no_device_signed_is_not_taken(at: Hearing, wrong: dict):
    has_device(at, ANN).update(wrong)
    sends(at, "start", "t1")
    await until(lambda: bool(answers(at)))

    assert [(kind, content["code"]) for kind, content in answers(at)] == [("cancel", "m.key_mismatch")]


async def test_all_who_begin_at_once_are_asked_about_at_once(at: Hearing):
    for user in (ANN, MALLORY):
        has_device(at, user)
        sends(at, "start", "t1", user)
        sends(at, "start", "t2", user, from_device="B")
    await until(lambda: len(answers(at)) == 4)

    assert at.platform.asked == [2]
    assert sorted(kind for kind, _ in answers(at)) == ["accept", "accept", "cancel", "cancel"]


async def test_about_strangers_nobody_is_asked(at: Hearing):
    has_device(at, "@eve:far.test")
    sends(at, "start", "t1", "@eve:far.test")
    await until(lambda: bool(answers(at)))

    ((kind, content),) = answers(at)
    assert (kind, content["code"], at.platform.asked) == ("cancel", "m.key_mismatch", [])


async def test_who_begins_again_and_again_is_answered_so_often_also_in_a_room(at: Hearing, caplog):
    for number in range(EACH + 10):
        says(at, f"${number}", MALLORY)
    await at.settled()
    sends(at, "request", "last")
    await until(lambda: bool(answers(at)))

    assert len(shown(at)) == EACH
    assert caplog.text.count("too much is sent to verify this device") == 1


async def test_a_failed_query_is_no_end(at: Hearing):
    at.platform.keys["device_keys"] = {ANN: None}
    sends(at, "start", "t1")
    await until(lambda: len(answers(at)) == 1)
    at.platform.keys["device_keys"] = {ANN: object()}  # It answers 500.
    sends(at, "start", "t2")
    await until(lambda: len(answers(at)) == 2)

    assert [kind for kind, _ in answers(at)] == ["cancel", "cancel"]


async def test_strangers_use_up_nobody_elses_share_and_after_a_minute_all_have_theirs_again():
    clock = FakeClock()
    limits = Limits(clock.monotonic)
    strange = [limits.allow(f"@{number}:far.test", strange=True) for number in range(STRANGERS + 5)]
    others = [limits.allow(f"@{number}:x", strange=False) for number in range(OTHERS + 5)]
    await clock.advance(MINUTE)
    again = [limits.allow(ANN, strange=False) for _ in range(EACH + 5)]

    assert (sum(strange), sum(others), sum(again)) == (STRANGERS, OTHERS, EACH)
    assert len(limits._people) == 1
