"""Encrypted rooms on a real homeserver: what matrix-nio's client writes is read, and what goes out it can read."""

import asyncio
import io
import json
import threading
from pathlib import Path

import pytest
import vodozemac

from hermes_agent.core.chat import Attachment, Button
from hermes_agent.gateway.channel import NeverHere, NotNow, Part, Pressed, Said
from hermes_agent.gateway.channels.matrix import CHANNEL
from hermes_agent.gateway.matrix.client import Client, meaning
from hermes_agent.gateway.matrix.decryption import KEYLESS, TAKE, Decryption
from hermes_agent.gateway.matrix.rooms import Rooms
from hermes_agent.gateway.service import Service
from tests.contracts.channels import needs
from tests.doubles.matrix import OWN
from tests.gateway.matrix.hearing import ANN, ROOM, Hearing, hearing
from tests.gateway.matrix.synapse import AtOnce, Person, Synapse, is_installed, person
from tests.gateway.matrix.test_real_server import Play, names, until
from tests.gateway.matrix.test_secret import Session

real = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(
        not is_installed(), reason="matrix-synapse is not installed (it has builds for Linux and macOS)"
    ),
]


class Secret(Play):
    """As `Play`, with encryption."""

    def __init__(self, server: Synapse, folder: Path) -> None:
        super().__init__(server, folder)
        self.options = {"homeserver": server.url, "encryption": "yes"}
        self.renew()

    def renew(self) -> None:
        """Be another process."""
        given = needs(self.needs.folder, self.options, self.needs.secret(""))
        self.needs.kept.texts and given.kept.texts.update(self.needs.kept.texts)
        self.needs = given
        self.channel = CHANNEL.make(given)
        self.channel._crypto._thread = AtOnce()


@pytest.fixture
async def play(server: Synapse, tmp_path: Path):
    made = Secret(server, tmp_path / "keys")
    yield made
    await made.channel.close()
    await made.needs.http.close()


@pytest.fixture
async def ann(server: Synapse, tmp_path: Path):
    (tmp_path / "ann").mkdir()
    async with person(server, f"ann{next(names)}", tmp_path / "ann") as made:
        yield made


async def meeting(play: Play, ann: Person) -> str:
    room = await ann.room(play.own, encrypted=True)

    await ann.meets(room, play.own)
    await ann.look()
    return room


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.usefixtures("server")
class TestReal:
    pytestmark = real

    async def test_words_files_and_choices_go_both_ways_also_in_a_new_process(
        self, play: Secret, ann: Person, tmp_path: Path, again: bool
    ):
        async with play.listening():
            room = await meeting(play, ann)
            await ann.say(room, "A secret")
            await until(lambda: bool(play.ear.of(Said)))
        (said,) = play.ear.of(Said)
        assert (said.text, said.where.chat_kind, said.sender.user) == ("A secret", "dm", ann.id)
        if again:
            await play.channel.close()
            await play.needs.http.close()
            play.renew()
        (tmp_path / "a.txt").write_bytes(b"content")
        file = Attachment(path=str(tmp_path / "a.txt"), name="a.txt", media_type="text/plain")
        buttons = (Button(label="Yes", value="y"), Button(label="No", value="n"))
        async with play.listening():
            await until(lambda: play.channel._rooms.own != "" and play.channel._crypto._olm is not None)
            first = await play.channel.send(said.where, Part(text="May I?", buttons=buttons, slot=4), "k1")
            await play.channel.edit(said.where, first, Part(text="May I now?", buttons=buttons, slot=4))
            await play.channel.send(said.where, Part(text="", file=file), "k2")
            shown = await ann.of(room, play.own)
            assert [each["body"].split("\n")[0] for each in shown] == ["May I now?", "a.txt"]
            locked = (await ann.client.download(shown[1]["file"]["url"])).body
            assert play.channel._crypto.unlock(locked, shown[1]["file"]) == b"content" != locked

            play.channel._rooms.messages.clear()
            await ann.react(room, first, "2\ufe0f\u20e3")
            uploaded, keys = await ann.client.upload(io.BytesIO(b"picture"), "image/png", encrypt=True, filesize=7)
            place = {"file": {**keys, "url": uploaded.content_uri}, "info": {"mimetype": "image/png"}}
            await ann.say(room, "sea.png", msgtype="m.image", **place)
            await until(lambda: bool(play.ear.of(Said)[-1].media) and bool(play.ear.of(Pressed)))
            assert await play.channel.fetch(play.ear.of(Said)[-1].media[0], 10**9) == b"picture"
            assert (play.ear.of(Pressed)[0].slot, play.ear.of(Pressed)[0].choice) == (4, 1)
        events = [event for event in ann.seen if event["sender"] == play.own and event["type"] == "m.room.message"]
        assert all(event["opened"] for event in events)


@pytest.mark.usefixtures("server")
class TestOthers:
    pytestmark = real

    async def test_who_comes_later_is_given_the_key_of_what_follows_alone(
        self, play: Secret, ann: Person, server: Synapse, tmp_path: Path
    ):
        (tmp_path / "bob").mkdir()
        async with play.listening(), person(server, f"bob{next(names)}", tmp_path / "bob") as bob:
            room = await meeting(play, ann)
            await ann.say(room, "Hello")
            await until(lambda: bool(play.ear.of(Said)))
            await play.channel.send(play.ear.of(Said)[0].where, Part(text="Between us"), "k1")
            await bob.look()
            await ann.client.room_invite(room, bob.id)
            await bob.client.join(room)
            await ann.say(room, "Bob is here")
            await until(lambda: len(play.ear.of(Said)) == 2)
            await play.channel.send(play.ear.of(Said)[1].where, Part(text="Hello, Bob"), "k2")
            shown = await bob.of(room, play.own)

        assert [each["body"] for each in shown] == ["Hello, Bob"]

    async def test_a_message_whose_key_did_not_come_is_said_to_be(self, play: Secret, ann: Person):
        play.channel._crypto.patience = 2.0
        async with play.listening():
            room = await meeting(play, ann)
            content = {
                "algorithm": "m.megolm.v1.aes-sha2",
                "ciphertext": "AwgAEnACgAkLmt6qF84IK++J7UDH2Za1YVchHyprqTqsg",
                "device_id": "D",
                "sender_key": "IlRMeOPX2e0MurIyfWEucYBRVOEEUMrOHqn/8mLqMjA",
                "session_id": "X3lUlvLELLYxeTx4yOVu6UDpasGEVO0Jbu+QFnm0cKQ",
            }
            await ann.say(room, "Hello")
            await until(lambda: bool(play.ear.of(Said)))
            path = f"/_matrix/client/v3/rooms/{room}/send/m.room.encrypted/t1"
            headers = {"Authorization": f"Bearer {ann.client.access_token}"}
            await ann.client.send("PUT", path, data=json.dumps(content), headers=headers)
            for _ in range(40):
                shown = await ann.of(room, play.own)
                if shown:
                    break

        assert [each["body"] for each in shown] == [KEYLESS]


def closed(tmp_path: Path) -> Decryption:
    client = Client(Service(title="x", http=needs(tmp_path).http, base="http://127.0.0.1:9", meaning=meaning))
    return Decryption(client, tmp_path, Rooms(client))


async def test_without_a_device_or_before_the_beginning_nothing_is_written(tmp_path: Path):
    crypto = closed(tmp_path)

    with pytest.raises(NotNow, match="no device"):
        await crypto.begin("@a:x", "")
    crypto._rooms._people["!1:x"] = {}
    with pytest.raises(NotNow, match="not there yet"):
        await crypto.write("!1:x", "m.room.message", {})
    await crypto.close()


@pytest.mark.parametrize("body", ["", "x", "!!!", "A" * 200, 5, None, {}])
@pytest.mark.parametrize("kind", [0, 1])
async def test_what_anybody_sends_to_the_device_keeps_it_from_nothing(tmp_path: Path, kind: int, body: object):
    crypto = closed(tmp_path)
    await crypto.begin("@hermes:x", "D")
    mine = crypto._olm.account.identity_keys["curve25519"]
    sent = {"type": kind, "body": body}
    content = {"algorithm": "m.olm.v1.curve25519-aes-sha2", "sender_key": "AAAA", "ciphertext": {mine: sent}}
    event = {"type": "m.room.encrypted", "sender": "@mallory:y", "content": content}

    await crypto._run(crypto._learn, {"to_device": {"events": [event]}, "device_one_time_keys_count": {}})

    assert len(crypto._seen._kept) == 1
    await crypto.close()


async def test_of_what_anybody_sends_to_the_device_no_more_than_a_hash_is_kept(tmp_path: Path):
    crypto = closed(tmp_path)
    await crypto.begin("@hermes:x", "D")
    event = {"type": "m.dummy", "sender": "@mallory:y", "content": {"more": "\ud800" + "x" * 60_000}}

    for _ in range(2):
        await crypto._run(crypto._learn, {"to_device": {"events": [event]}})

    (mark,) = crypto._seen._kept
    assert len(mark) == 32
    await crypto.close()


async def test_it_ends_without_holding_anything_up_while_a_job_of_somebody_who_was_cancelled_goes_on(tmp_path: Path):
    crypto, enough, ended = closed(tmp_path), threading.Event(), []
    job = asyncio.create_task(crypto._run(lambda: ended.append(enough.wait(5))))
    await asyncio.sleep(0)
    job.cancel()

    asyncio.get_running_loop().call_soon(enough.set)
    await crypto.close()
    await crypto.close()

    assert ended == [True]


async def test_what_was_opened_for_somebody_who_was_cancelled_is_closed(tmp_path: Path):
    crypto = closed(tmp_path / "keys")
    beginning = asyncio.create_task(crypto.begin("@hermes:x", "D"))
    await until((tmp_path / "keys").exists)
    beginning.cancel()
    await asyncio.wait((beginning,))

    await crypto.close()

    assert (tmp_path / "keys" / "@hermes:x_D.db").exists()
    assert crypto._olm is None


async def test_a_message_that_is_no_message_is_not_read(tmp_path: Path):
    crypto = closed(tmp_path)
    await crypto.begin("@hermes:x", "D")
    content = {"algorithm": "m.megolm.v1.aes-sha2", "sender_key": "A", "session_id": "s", "device_id": "D"}

    for odd in ("x", {**content, "ciphertext": ""}, {**content, "ciphertext": 5}):
        event = {"type": "m.room.encrypted", "sender": "@ann:x", "event_id": "$1", "origin_server_ts": 1}
        assert await crypto.read("!1:x", {**event, "content": odd, "unsigned": "x"}) is None
    await crypto.close()


async def test_what_is_not_encrypted_in_a_known_way_is_not_read(tmp_path: Path):
    crypto = closed(tmp_path)
    await crypto.begin("@a:x", "D")
    await crypto.begin("@a:x", "D")

    event = {"type": "m.room.encrypted", "event_id": "$1", "sender": "@b:x", "origin_server_ts": 1, "content": {}}
    assert await crypto.read("!1:x", event) is None
    await crypto.close()


@pytest.fixture
def crypto(tmp_path: Path) -> Decryption:
    return closed(tmp_path)


def test_a_file_is_what_it_was(crypto):
    content, keys = crypto.lock(b"content")

    assert content != b"content"
    assert crypto.unlock(content, keys) == b"content"


@pytest.mark.parametrize("odd", [{}, {"iv": 5}, {"key": "x"}, {"hashes": {"sha256": "x"}}])
def test_a_file_with_another_key_is_refused(crypto, odd):
    content, keys = crypto.lock(b"content")

    with pytest.raises(NeverHere, match="cannot be decrypted"):
        crypto.unlock(content, {**keys, **odd} if odd else {})


def test_a_file_with_other_bytes_is_refused(crypto):
    content, keys = crypto.lock(b"content")

    with pytest.raises(NeverHere, match="cannot be decrypted"):
        crypto.unlock(content[:-1], keys)


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
