"""Verification by emoji: the other side, as the client-server API describes it, compares and finds the same."""

import hashlib

import pytest
import vodozemac

from hermes_agent.gateway.matrix.emoji import EMOJI
from hermes_agent.gateway.matrix.signing import canonical, unpadded
from hermes_agent.gateway.matrix.verifying import MACS, MOST, PREFIX, REQUEST, Party, Verifying, is_verification, way_of

OWN = Party(user="@hermes:x", device="H", keys={"ed25519:H": "hkey", "ed25519:master": "master"})
ANN = Party(user="@ann:x", device="A", keys={"ed25519:A": "akey"})
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

    def say(self, kind: str, other: Party = ANN, **content: object) -> list:
        event = {"type": f"{PREFIX}{kind}", "sender": other.user, "content": {**content, **self.way}}
        return self.verifying.hear(OWN, other, event)

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
        return ", ".join(EMOJI[index] for index in self.shared.bytes(info).emoji_indices)

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
    assert content["mac"] == {name: ann.sealed(key, name, back) for name, key in OWN.keys.items()}
    assert content["keys"] == ann.sealed("ed25519:H,ed25519:master", "KEY_IDS", back)
    assert ann.say("done") == []
    assert ann.verifying.device_of("@ann:x", ann.mark) == ""


def test_a_request_is_answered_in_the_way_it_came():
    verifying = Verifying()
    room = {
        "type": "m.room.message",
        "event_id": "$request",
        "content": {"msgtype": REQUEST, "to": OWN.user, "from_device": "A", "methods": ["m.sas.v1"]},
    }
    device = {"type": f"{PREFIX}request", "content": {"transaction_id": "t1", "from_device": "A"}}

    ((kind, in_room),) = verifying.hear(OWN, ANN, room)
    ((_, directly),) = verifying.hear(OWN, ANN, device)

    assert kind == f"{PREFIX}ready"
    assert in_room == {"from_device": "H", "methods": ["m.sas.v1"], **IN_A_ROOM}
    assert directly == {"from_device": "H", "methods": ["m.sas.v1"], **BETWEEN_DEVICES}
    assert is_verification(room, OWN.user)
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
    assert ann.verifying.hear(OWN, ANN, {"type": f"{PREFIX}start", "content": {}}) == []
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
