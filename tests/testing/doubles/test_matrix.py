"""matrix-nio talks to the double as to a homeserver."""

import io

import nio
import pytest

from hermes_agent.testing.doubles.matrix import OWN, matrix_platform

ROOM = "!1:hermes.test"


@pytest.fixture
async def platform():
    async with matrix_platform() as made:
        yield made


@pytest.fixture
async def client(platform):
    made = nio.AsyncClient(platform.url, OWN, device_id="DEVICE")
    made.access_token = "secret"
    yield made
    await made.close()


async def test_it_hears_and_answers(platform, client):
    await platform.say("hello", thread="$root")
    found = await client.sync(timeout=0)
    (event,) = found.rooms.join[ROOM].timeline.events
    assert (event.body, event.sender) == ("hello", "@ann:hermes.test")
    await client.sync(timeout=0)
    assert platform.told() == 1

    relation = {"m.relates_to": {"m.in_reply_to": {"event_id": event.event_id}}}
    content = {"msgtype": "m.text", "body": "hi", **relation}
    one = await client.room_send(ROOM, "m.room.message", content, tx_id="t1")
    two = await client.room_send(ROOM, "m.room.message", content, tx_id="t1")
    assert one.event_id == two.event_id
    edit = {"m.new_content": {"body": "bye"}, "m.relates_to": {"rel_type": "m.replace", "event_id": one.event_id}}
    await client.room_send(ROOM, "m.room.message", {"msgtype": "m.text", "body": "* bye", **edit})
    (shown,) = platform.chats.of(ROOM)
    assert (shown.text, shown.answers, shown.edits) == ("bye", event.event_id, 1)

    await client.room_redact(ROOM, one.event_id)
    assert platform.chats.of(ROOM) == []


async def test_it_looks_around(platform, client):
    first = await platform.say("hello")
    assert (await client.whoami()).user_id == OWN
    assert {member.user_id for member in (await client.joined_members(ROOM)).members} == {OWN, "@ann:hermes.test"}
    assert (await client.room_get_event(ROOM, first)).event.body == "hello"
    assert isinstance(await client.room_get_event(ROOM, "$none"), nio.ErrorResponse)
    platform.invite("!2:hermes.test", "@ann:hermes.test")
    assert "!2:hermes.test" in (await client.sync(timeout=0)).rooms.invite
    assert (await client.join("!2:hermes.test")).room_id == "!2:hermes.test"
    assert isinstance(await client.join("!3:hermes.test"), nio.JoinError)
    await client.room_typing("!2:hermes.test")
    assert platform.chats.typing == ["!2:hermes.test"]


async def test_it_keeps_files(platform, client):
    uploaded, _ = await client.upload(io.BytesIO(b"content"), "text/plain", filesize=7)

    assert (await client.download(uploaded.content_uri)).body == b"content"


async def test_it_is_refused_as_by_a_homeserver(platform, client):
    platform.refusal = (401, "M_UNKNOWN_TOKEN")

    found = await client.whoami()

    assert isinstance(found, nio.WhoamiError)
    assert found.status_code == "M_UNKNOWN_TOKEN"
