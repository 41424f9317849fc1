"""matrix-nio talks to the double as to a homeserver."""

import nio

from tests.doubles.matrix import OWN

ROOM = "!1:hermes.test"


async def test_it_looks_around(homeserver, client):
    first = await homeserver.say("hello")
    assert (await client.whoami()).user_id == OWN
    assert {member.user_id for member in (await client.joined_members(ROOM)).members} == {OWN, "@ann:hermes.test"}
    assert (await client.room_get_event(ROOM, first)).event.body == "hello"
    assert isinstance(await client.room_get_event(ROOM, "$none"), nio.ErrorResponse)
    homeserver.invite("!2:hermes.test", "@ann:hermes.test")
    assert "!2:hermes.test" in (await client.sync(timeout=0)).rooms.invite
    assert (await client.join("!2:hermes.test")).room_id == "!2:hermes.test"
    assert isinstance(await client.join("!3:hermes.test"), nio.JoinError)
    await client.room_typing("!2:hermes.test")
    assert homeserver.chats.typing == ["!2:hermes.test"]
