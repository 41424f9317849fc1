"""Keys that were asked for: taken from the device that made them, and from nobody else."""

import pytest
import vodozemac

from hermes_agent.gateway.matrix.decryption import Decryption
from hermes_agent.gateway.matrix.machine import TAKE
from tests.doubles.matrix import OWN
from tests.gateway.matrix.hearing import ANN, ROOM, Hearing, hearing, until
from tests.gateway.matrix.test_secret import Session


@pytest.fixture
async def at(tmp_path):
    async with hearing(tmp_path, encryption="yes") as made, made.listening():
        await made.platform.say("in the clear")
        await made.settled()
        yield made


def forwarded(ann: Session, **other: str) -> dict:
    """What her device answers."""
    inbound = vodozemac.InboundGroupSession(ann.key)
    content = {
        "algorithm": "m.megolm.v1.aes-sha2",
        "room_id": ROOM,
        "session_id": ann.made.session_id,
        "session_key": inbound.export_at(0).to_base64(),
        "sender_key": ann.device.curve25519_key.to_base64(),
        "sender_claimed_ed25519_key": ann.device.ed25519_key.to_base64(),
        "forwarding_curve25519_key_chain": [],
        **other,
    }
    return {
        "type": "m.forwarded_room_key",
        "sender": ANN,
        "sender_device": "A",
        "recipient": OWN,
        "recipient_keys": {"ed25519": "x"},
        "keys": {"ed25519": ann.device.ed25519_key.to_base64()},
        "content": content,
    }


async def asked(at: Hearing, ann: Session) -> Decryption:
    """Have a message come whose key does not."""
    ann.says(at, "A secret")
    await until(lambda: bool(at.platform.direct))
    crypto: Decryption = at.channel._crypto
    return crypto


async def test_the_key_of_a_message_is_asked_for_once_and_taken_from_who_made_it(at: Hearing):
    ann = Session()
    crypto = await asked(at, ann)
    ann.says(at, "Another")
    key = ann.device.curve25519_key.to_base64()
    await crypto._run(getattr(crypto._olm, TAKE), ANN, key, forwarded(ann))
    at.platform.to_device.append({"type": "m.dummy", "sender": ANN, "content": {}})
    at.platform.more.set()
    await until(lambda: len(at.heard) == 3)

    ((kind, messages),) = at.platform.direct
    assert (kind, messages[ANN]["A"]["body"]["session_id"]) == ("m.room_key_request", ann.made.session_id)
    assert sorted(said.text for said in at.heard) == ["A secret", "Another", "in the clear"]
    assert not crypto._olm.outgoing_key_requests


@pytest.mark.parametrize("other", [{"room_id": "!9:x"}, {"sender_key": "x"}, {"session_id": "x"}, {"session_key": "x"}])
async def test_what_is_not_the_key_that_was_asked_for_is_not_taken(at: Hearing, other: dict):
    ann = Session()
    crypto = await asked(at, ann)
    key = ann.device.curve25519_key.to_base64()
    await crypto._run(getattr(crypto._olm, TAKE), ANN, key, forwarded(ann, **other))

    assert not crypto._olm.inbound_group_store.get(ROOM, key, ann.made.session_id)


async def test_a_key_is_not_taken_from_somebody_else(at: Hearing):
    ann = Session()
    crypto = await asked(at, ann)
    await crypto._run(getattr(crypto._olm, TAKE), "@mallory:x", "another device", forwarded(ann))

    assert not crypto._olm.inbound_group_store.get(ROOM, ann.device.curve25519_key.to_base64(), ann.made.session_id)
