"""matrix-nio talks to the double as to a homeserver."""

ROOM = "!1:hermes.test"


async def test_it_hears_and_answers(homeserver, client):
    await homeserver.say("hello", thread="$root")
    found = await client.sync(timeout=0)
    (event,) = found.rooms.join[ROOM].timeline.events
    assert (event.body, event.sender) == ("hello", "@ann:hermes.test")
    await client.sync(timeout=0)
    assert homeserver.received() == 1

    relation = {"m.relates_to": {"m.in_reply_to": {"event_id": event.event_id}}}
    content = {"msgtype": "m.text", "body": "hi", **relation}
    one = await client.room_send(ROOM, "m.room.message", content, tx_id="t1")
    two = await client.room_send(ROOM, "m.room.message", content, tx_id="t1")
    assert one.event_id == two.event_id
    edit = {"m.new_content": {"body": "bye"}, "m.relates_to": {"rel_type": "m.replace", "event_id": one.event_id}}
    await client.room_send(ROOM, "m.room.message", {"msgtype": "m.text", "body": "* bye", **edit})
    (shown,) = homeserver.chats.of(ROOM)
    assert (shown.text, shown.answers, shown.edits) == ("bye", event.event_id, 1)

    await client.room_redact(ROOM, one.event_id)
    assert homeserver.chats.of(ROOM) == []
