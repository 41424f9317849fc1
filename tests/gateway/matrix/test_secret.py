"""Encrypted rooms at the double: keys that come late or never."""

import asyncio
import json
from dataclasses import replace

import pytest
import vodozemac

from hermes_agent.core.chat import Attachment, Button, Conversation
from hermes_agent.gateway.channel import Media, Part, Said
from hermes_agent.gateway.channels.matrix import CHANNEL
from hermes_agent.gateway.matrix.decryption import KEYLESS, Decryption
from tests.doubles.matrix import OWN
from tests.gateway.matrix.hearing import ANN, ROOM, Hearing, hearing, until

TO = Conversation(platform="matrix", chat=ROOM)


class Session:
    """What Ann encrypts with."""

    def __init__(self) -> None:
        self.made = vodozemac.GroupSession()
        self.key = self.made.session_key
        self.device = vodozemac.Account()

    def says(self, at: Hearing, text: str) -> str:
        inner = {"type": "m.room.message", "room_id": ROOM, "content": {"msgtype": "m.text", "body": text}}
        content = {
            "algorithm": "m.megolm.v1.aes-sha2",
            "ciphertext": self.made.encrypt(json.dumps(inner).encode()).to_base64(),
            "device_id": "A",
            "sender_key": self.device.curve25519_key.to_base64(),
            "session_id": self.made.session_id,
        }
        return at.platform.happens(ROOM, "m.room.encrypted", content, ANN)

    def reaches(self, at: Hearing) -> None:
        """Its key reaches the agent."""
        crypto: Decryption = at.channel._crypto
        keys = self.device.curve25519_key.to_base64(), self.device.ed25519_key.to_base64()
        crypto._olm.create_group_session(*keys, ROOM, self.made.session_id, self.key.to_base64())
        at.platform.to_device.append({"type": "m.dummy", "sender": ANN, "content": {}})
        at.platform.more.set()


@pytest.fixture
async def at(tmp_path):
    async with hearing(tmp_path, encryption="yes") as made, made.listening():
        await made.platform.say("in the clear")
        await made.until(Said)
        await made.settled()
        yield made


async def test_a_message_whose_key_comes_after_it_is_read_then(at: Hearing):
    ann = Session()
    id_ = ann.says(at, "A secret")
    await until(lambda: id_ in str(at.needs.kept.texts))
    ann.reaches(at)
    await at.platform.say("another")
    said = await at.until(Said, 3)

    assert sorted(each.text for each in said[1:]) == ["A secret", "another"]
    await at.settled()
    await until(lambda: id_ not in str(at.needs.kept.texts))
    assert at.platform.chats.of(ROOM) == []


async def test_a_message_whose_key_never_comes_is_asked_for_under_it_once(at: Hearing):
    at.channel._crypto.patience = 0.01
    ann = Session()
    first = ann.says(at, "A secret")
    ann.says(at, "Another")
    await until(lambda: bool(at.platform.chats.of(ROOM)))
    await at.platform.say("words")
    await at.until(Said, 2)

    (shown,) = at.platform.chats.of(ROOM)
    assert (shown.text, shown.answers) == (KEYLESS, first)


async def test_a_message_that_was_taken_away_before_its_key_came_is_not_asked_for(at: Hearing):
    ann = Session()
    id_ = ann.says(at, "A secret")
    await until(lambda: id_ in str(at.needs.kept.texts))
    at.platform.rooms[ROOM].events[id_]["content"] = {}
    at.channel._crypto.patience = 0.01
    await at.platform.say("words")
    await until(lambda: id_ not in str(at.needs.kept.texts))

    assert at.platform.chats.of(ROOM) == []


async def test_a_message_that_is_gone_is_asked_for(at: Hearing):
    at.channel._crypto.patience = 0.01
    id_ = Session().says(at, "A secret")
    del at.platform.rooms[ROOM].events[id_]
    await until(lambda: bool(at.platform.chats.of(ROOM)))


async def test_its_owner_is_told_of_its_device_before_anything_happens(at: Hearing):
    notes: list[str] = []
    other = CHANNEL.make(replace(at.needs, note=notes.append))
    listening = asyncio.create_task(other.listen(at))
    await until(lambda: bool(notes))
    listening.cancel()
    await asyncio.wait((listening,))
    await other.close()

    assert notes[0].startswith("device DEVICE, fingerprint ")


async def test_one_identity_lasts_over_processes(tmp_path):
    prints = []
    for _ in range(2):
        async with hearing(tmp_path, encryption="yes") as at, at.listening():
            await at.platform.say("hello")
            await at.until(Said)
            prints.append(at.channel._crypto._fingerprint)

    assert prints[0] == prints[1]


async def test_what_goes_into_an_encrypted_room_is_encrypted_except_signs(at: Hearing):
    at.platform.rooms[ROOM].encrypted = True
    at.channel._rooms._encrypted.clear()
    await at.channel.send(TO, Part(text="A secret", buttons=(Button(label="Yes", value="yes"),)), "k1")

    own = [event for event in at.platform.rooms[ROOM].events.values() if event["sender"] == OWN]
    assert [event["type"] for event in own] == ["m.room.encrypted", "m.reaction"]
    assert "A secret" not in str(own)


async def test_a_file_goes_into_an_encrypted_room_locked_and_comes_back_whole(at: Hearing, tmp_path):
    at.platform.rooms[ROOM].encrypted = True
    at.channel._rooms._encrypted.clear()
    (tmp_path / "a.txt").write_bytes(b"A secret")
    file = Attachment(path=str(tmp_path / "a.txt"), name="a.txt", media_type="text/plain")
    content = await at.channel._uploaded(ROOM, Part(text="", file=file))

    assert b"A secret" not in at.platform.files.values()
    assert (
        await at.channel.fetch(Media(name="a", media_type="", size=0, reference=json.dumps(content)), 100)
        == b"A secret"
    )
