"""Verification by emoji: the other side, as the client-server API describes it, compares and finds the same."""

import hashlib

import nio
import pytest
import vodozemac
from nio.store import SqliteMemoryStore

from hermes_agent.core.chat import Conversation
from hermes_agent.gateway.channel import Part, Said
from hermes_agent.gateway.matrix.decryption import canonical, unpadded
from hermes_agent.host.inbound.message import MINUTE
from hermes_agent.skills.skill import MOST
from hermes_agent.testing.clock import FakeClock
from hermes_agent.tools.permission.requests import (
    EACH,
    MACS,
    OTHERS,
    PREFIX,
    REQUEST,
    STRANGERS,
    Limits,
    Party,
    Verifying,
    is_verification,
    way_of,
)
from tests.doubles.matrix import OWN
from tests.gateway.matrix.hearing import ANN, ROOM, Hearing, hearing, until

OURS = Party(user="@hermes:x", device="H", keys={"ed25519:H": "hkey", "ed25519:master": "master"})
THEIRS = Party(user="@ann:x", device="A", keys={"ed25519:A": "akey"})
IN_A_ROOM = {"m.relates_to": {"rel_type": "m.reference", "event_id": "$request"}}
BETWEEN_DEVICES = {"transaction_id": "t1"}


class Ann:
    """Who verifies the agent's device."""

    def __init__(self, way: dict, mac: str = MACS[0]) -> None:
        self.way, self.mac = way, mac
        self.mark = way.get("transaction_id") or "$request"
        self.verifying = Verifying()
        self.sas = vodozemac.Sas()
        self.shared = None
        self.start: dict = {}
        self.commitment = ""

    def say(self, kind: str, other: Party = THEIRS, **content: object) -> list:
        event = {"type": f"{PREFIX}{kind}", "sender": other.user, "content": {**content, **self.way}}
        return self.verifying.hear(OURS, other, event)

    def starts(self, **other: object) -> list:
        self.start = {
            "from_device": "A",
            "method": "m.sas.v1",
            "key_agreement_protocols": ["curve25519-hkdf-sha256", "curve25519"],
            "hashes": ["sha256"],
            "message_authentication_codes": [self.mac],
            "short_authentication_string": ["emoji", "decimal"],
            **other,
        }
        return self.say("start", **self.start)

    def keys(self) -> str:
        """Exchange keys; the emoji on this side."""
        ((_, said),) = self.say("key", key=self.sas.public_key.to_base64())
        key = said["key"]
        expected = hashlib.sha256(key.encode() + canonical({**self.start, **self.way})).digest()
        assert self.commitment == unpadded(expected)
        self.shared = self.sas.diffie_hellman(vodozemac.Curve25519PublicKey.from_base64(key))
        info = f"MATRIX_KEY_VERIFICATION_SAS|@ann:x|A|{self.sas.public_key.to_base64()}|@hermes:x|H|{key}|{self.mark}"
        return ", ".join(" ".join(nio.crypto.Sas.emoji[index]) for index in self.shared.bytes(info).emoji_indices)

    def sealed(self, content: str, name: str, sides: str = "@ann:xA@hermes:xH") -> str:
        seal = self.shared.calculate_mac if self.mac == MACS[0] else self.shared.calculate_mac_invalid_base64
        return seal(content, f"MATRIX_KEY_VERIFICATION_MAC{sides}{self.mark}{name}")

    def ready(self) -> "Ann":
        self.commitment = self.starts()[0][1]["commitment"]
        return self

    def compares(self, key: str = "akey", names: str = "ed25519:A") -> list:
        mac = {"ed25519:A": self.sealed(key, "ed25519:A")}
        return self.say("mac", mac=mac, keys=self.sealed(names, "KEY_IDS"))


@pytest.mark.parametrize("mac", MACS)
@pytest.mark.parametrize("way", [IN_A_ROOM, BETWEEN_DEVICES])
def test_a_person_finds_the_same_emoji_and_the_keys_of_device_and_account(way, mac, caplog):
    caplog.set_level("INFO")
    ann = Ann(way, mac).ready()
    emoji = ann.keys()
    assert f"@ann:x compares these with what they are shown: {emoji}" in caplog.text

    (kind, content), (last, _) = ann.compares()
    back = "@hermes:xH@ann:xA"
    assert (kind, last) == (f"{PREFIX}mac", f"{PREFIX}done")
    assert content["mac"] == {name: ann.sealed(key, name, back) for name, key in OURS.keys.items()}
    assert content["keys"] == ann.sealed("ed25519:H,ed25519:master", "KEY_IDS", back)
    assert ann.say("done") == []
    assert ann.verifying.device_of("@ann:x", ann.mark) == ""


def test_a_request_is_answered_in_the_way_it_came():
    verifying = Verifying()
    room = {
        "type": "m.room.message",
        "event_id": "$request",
        "content": {"msgtype": REQUEST, "to": OURS.user, "from_device": "A", "methods": ["m.sas.v1"]},
    }
    device = {"type": f"{PREFIX}request", "content": {"transaction_id": "t1", "from_device": "A"}}

    ((kind, in_room),) = verifying.hear(OURS, THEIRS, room)
    ((_, directly),) = verifying.hear(OURS, THEIRS, device)

    assert kind == f"{PREFIX}ready"
    assert in_room == {"from_device": "H", "methods": ["m.sas.v1"], **IN_A_ROOM}
    assert directly == {"from_device": "H", "methods": ["m.sas.v1"], **BETWEEN_DEVICES}
    assert is_verification(room, OURS.user)
    assert not is_verification(room, "@other:x")


@pytest.mark.parametrize(
    "other",
    [
        {"method": "m.qr"},
        {"hashes": ["md5"]},
        {"key_agreement_protocols": "curve25519-hkdf-sha256"},
        {"message_authentication_codes": [5]},
        {"short_authentication_string": None},
    ],
)
def test_what_it_does_not_know_is_refused_by_name(other):
    ann = Ann(IN_A_ROOM)
    ((kind, content),) = ann.starts(**other)

    assert (kind, content["code"]) == (f"{PREFIX}cancel", "m.unknown_method")
    assert ann.say("key", key="x") == []


def test_a_device_of_which_nobody_knows_keys_is_refused():
    ann = Ann(IN_A_ROOM)
    ((_, content),) = ann.say("start", Party(user="@ann:x", device="A", keys={}), from_device="A")

    assert content["code"] == "m.key_mismatch"


@pytest.mark.parametrize(("key", "names"), [("another", "ed25519:A"), ("akey", "ed25519:A,ed25519:B")])
def test_keys_that_are_not_theirs_are_refused(key, names, caplog):
    ann = Ann(IN_A_ROOM).ready()
    ann.keys()
    ((kind, content),) = ann.compares(key, names)

    assert (kind, content["code"]) == (f"{PREFIX}cancel", "m.key_mismatch")
    assert "@ann:x could not verify this device" in caplog.text


def test_what_comes_out_of_its_order_ends_it():
    ann = Ann(IN_A_ROOM).ready()
    assert ann.say("mac", mac={}, keys="x")[0][1]["code"] == "m.unexpected_message"

    ann = Ann(IN_A_ROOM).ready()
    ann.keys()
    assert ann.say("key", key="x")[0][1]["code"] == "m.unexpected_message"

    ann = Ann(IN_A_ROOM).ready()
    assert ann.say("key", key="no key")[0][1]["code"] == "m.invalid_message"


def test_what_belongs_to_none_is_passed_over():
    ann = Ann(IN_A_ROOM)
    assert ann.say("key", key="x") == ann.say("mac", mac=5) == ann.say("cancel") == []
    assert ann.verifying.hear(OURS, THEIRS, {"type": f"{PREFIX}start", "content": {}}) == []
    assert way_of({"content": "x"})[0] == ""
    ann.ready()
    assert ann.say("accept") == []
    assert ann.say("cancel", code="m.user") == []
    assert ann.verifying.device_of("@ann:x", "$request") == ""


def test_only_so_many_are_under_way():
    ann = Ann(BETWEEN_DEVICES)
    for number in range(MOST + 3):
        ann.way = {"transaction_id": str(number)}
        ann.starts()

    assert ann.verifying.device_of("@ann:x", "2") == ""
    assert ann.verifying.device_of("@ann:x", "3") == "A"


@pytest.mark.parametrize("broken", [{"more": "\ud800"}, {"more": {"\ud800": 1}}])
def test_half_a_sign_ends_the_verification_alone(broken):
    ann = Ann(BETWEEN_DEVICES)

    ((kind, content),) = ann.starts(**broken)

    assert (kind, content["code"]) == (f"{PREFIX}cancel", "m.invalid_message")


def test_half_a_sign_in_the_name_of_a_key_ends_the_verification_alone():
    ann = Ann(BETWEEN_DEVICES).ready()
    ann.keys()

    ((kind, content),) = ann.say("mac", mac={"ed25519:\ud800": "x"}, keys="x")

    assert (kind, content["code"]) == (f"{PREFIX}cancel", "m.invalid_message")


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
    store = SqliteMemoryStore(user, "A")
    keys: dict = nio.crypto.Olm(user, "A", store).share_keys()["device_keys"]
    store.database.close()
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


async def test_people_are_answered_side_by_side_and_each_in_their_order(at: Hearing):
    at.platform.silent.add(MALLORY)
    sends(at, "start", "m1", MALLORY)
    sends(at, "request", "m2", MALLORY)
    has_device(at, ANN)
    sends(at, "start", "t1")
    sends(at, "start", "t2", from_device="B")
    await until(lambda: len(answers(at)) == 2)
    assert [(kind, content["transaction_id"]) for kind, content in answers(at)] == [("accept", "t1"), ("cancel", "t2")]

    at.platform.spoken.set()
    await until(lambda: len(answers(at)) == 4)
    assert [content["transaction_id"] for _, content in answers(at)[2:]] == ["m1", "m2"]


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
    await until(lambda: bool(answers(at)) and len(shown(at)) >= EACH)

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
    assert len(limits._taken) == 2
