"""What people do in rooms, as the gateway's words."""

import asyncio

import pytest
from hypothesis import given, settings, strategies as st

from hermes_agent.app.chats.settings import ChannelSettings
from hermes_agent.core.chat import Standing
from hermes_agent.gateway.access_control import Access
from hermes_agent.gateway.channel import NeverHere, Pressed, Removed, Said, Withdrawn
from hermes_agent.gateway.chat_migration import ChatMigration
from hermes_agent.gateway.matrix.rooms import PEOPLE_KNOWN, Crypto, Known, Reader, Rooms, thread_of
from hermes_agent.testing.channel import FakeKept
from tests.doubles.matrix import OWN, Room
from tests.gateway.matrix.hearing import ANN, GROUP, ROOM, hearing, until


def member(user: str, membership: str) -> dict:
    return {"type": "m.room.member", "state_key": user, "content": {"membership": membership, "displayname": "Bob"}}


async def test_who_comes_and_goes_makes_a_group_and_a_chat_with_one(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        rooms: Rooms = at.channel._rooms
        await at.platform.say("one")
        await at.until(Said)
        assert await rooms.alone(ROOM)
        rooms.changed(ROOM, member("@bob:x", "join"))
        assert not await rooms.alone(ROOM)
        assert (await rooms.people(ROOM))["@bob:x"] == "Bob"
        rooms.changed(ROOM, member("@bob:x", "leave"))
        assert await rooms.alone(ROOM)
        rooms.changed("!other:x", member("@bob:x", "join"))
        assert not await rooms.encrypted(ROOM)
        rooms.changed(ROOM, {"type": "m.room.encryption", "content": {}})
        assert await rooms.encrypted(ROOM)


async def test_a_room_of_which_nobody_says_who_is_in_it_is_no_chat_with_one(tmp_path):
    async with hearing(tmp_path) as at:
        at.platform.refusal = (403, "M_FORBIDDEN")
        assert not await at.channel._rooms.alone(ROOM)


async def test_a_message_of_an_earlier_process_is_asked_for(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("one")
        await at.until(Said)
        content = {"msgtype": "m.text", "body": "May I?", "hermes.slot": 3, "m.relates_to": {"rel_type": "m.thread"}}
        first = at.platform.happens(ROOM, "m.room.message", content, OWN)
        newer = {"m.relations": {"m.replace": {"content": {"m.new_content": {"hermes.slot": 8}}}}}
        second = at.platform.happens(ROOM, "m.room.message", content, OWN, unsigned=newer)
        rooms: Rooms = at.channel._rooms
        assert await rooms.message(ROOM, first) == Known(user=OWN, mine=True, slot=3)
        assert (await rooms.message(ROOM, second)).slot == 8

        for message in (first, second):
            relation = {"rel_type": "m.annotation", "event_id": message, "key": "2\u20e3"}
            at.platform.happens(ROOM, "m.reaction", {"m.relates_to": relation}, ANN)
        pressed = await at.until(Pressed, 2)

    assert [(each.slot, each.choice) for each in pressed] == [(3, 1), (8, 1)]


async def test_only_so_much_is_remembered(tmp_path):
    async with hearing(tmp_path) as at:
        rooms: Rooms = at.channel._rooms
        for number in range(6000):
            rooms.messages.put(str(number), Known())
            rooms.gone.put(str(number), True)

        assert (len(rooms.messages._kept), len(rooms.gone._kept)) == (5000, 5000)


async def test_a_room_of_which_nobody_says_whether_it_is_encrypted_is_not_taken_for_an_open_one(tmp_path):
    async with hearing(tmp_path) as at:
        rooms: Rooms = at.channel._rooms
        at.platform.refusal = (403, "M_FORBIDDEN")
        with pytest.raises(NeverHere):
            await rooms.encrypted(ROOM)
        at.platform.refusal, at.platform.rooms[ROOM] = None, Room(encrypted=True)

        assert await rooms.encrypted(ROOM)


async def test_a_crowd_of_rooms_is_not_kept(tmp_path):
    async with hearing(tmp_path) as at:
        rooms: Rooms = at.channel._rooms
        for number in range(3):
            crowd = {f"@{each}:x": "" for each in range(PEOPLE_KNOWN // 2)}
            at.platform.room(f"!{number}:x", crowd)
            await rooms.people(f"!{number}:x")

        assert len(rooms._people) == 1


def test_a_relation_of_another_kind_is_no_thread():
    assert thread_of({"rel_type": "m.replace", "event_id": "$1"}) == ""
    assert thread_of({"rel_type": "m.thread", "event_id": 5}) == ""


class Slow:
    """A homeserver whose answer was true when it was made."""

    def __init__(self) -> None:
        self.asked = 0
        self.members = {OWN: {}, "@ann:x": {}, "@bob:x": {}}
        self.go = asyncio.Event()

    async def call(self, *_, **__) -> dict:
        self.asked += 1
        answer = {"joined": dict(self.members)}
        await self.go.wait()
        return answer


async def test_who_is_removed_while_the_homeserver_answers_is_given_no_keys():
    homeserver = Slow()
    rooms = Rooms(homeserver)  # type: ignore[arg-type]  # as much of a client as is asked
    asking = asyncio.ensure_future(rooms.people(ROOM))
    while not homeserver.asked:
        await asyncio.sleep(0)

    del homeserver.members["@bob:x"]
    rooms.changed(ROOM, member("@bob:x", "ban"))
    homeserver.go.set()

    assert "@bob:x" not in await asking
    assert "@bob:x" not in await rooms.people(ROOM)


async def test_a_room_is_called_what_it_is_called_last(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        rooms: Rooms = at.channel._rooms
        assert await rooms.title(ROOM) == ""
        await at.platform.say("one", group=True)
        at.platform.happens(ROOM, "m.room.name", {"name": "Parties"}, ANN, state_key="")
        await at.platform.say("two", group=True)
        await at.until(Said, 2)
        assert await rooms.title(ROOM) == "Parties"
        assert [said.title for said in at.of(Said)][1] == "Parties"


async def test_without_encryption_nothing_is_read_and_nothing_goes_out_in_the_clear():
    shut = Crypto()
    await shut.begin("@x:y", "D")
    await shut.synced({})

    assert await shut.read("!1", {}) is None
    assert "matrix-e2ee" in shut.excuse
    with pytest.raises(NeverHere, match="encrypt"):
        await shut.write("!1", "m.room.message", {})
    with pytest.raises(NeverHere, match="encrypt"):
        shut.lock(b"")
    with pytest.raises(NeverHere, match="encrypt"):
        shut.unlock(b"", {})
    await shut.close()


NAMES = (
    *("msgtype", "body", "m.relates_to", "m.in_reply_to", "rel_type", "event_id", "m.new_content", "m.mentions"),
    *("user_ids", "info", "size", "mimetype", "filename", "url", "file", "geo_uri", "key", "replacement_room"),
    *("joined", "sender", "content", "unsigned", "m.relations", "m.replace", "type", "redacts", "is_falling_back"),
)
REPLY = {"m.in_reply_to": {"event_id": "$x"}}


@pytest.mark.parametrize(
    ("text", "content", "words", "addressed"),
    [
        ("Hermes: do it", {}, "do it", True),
        ("@hermes: do it", {}, "do it", True),
        (f"{OWN} do it", {}, "do it", True),
        ("Hermes do it", {"m.mentions": {"user_ids": [OWN]}}, "do it", True),
        ("Hermes is a god", {}, "Hermes is a god", False),
        ("Hermes", {"m.mentions": {"user_ids": [OWN]}}, "", True),
        ("> <@x> old\n> words\n\nnew", {"m.relates_to": REPLY}, "new", False),
        ("> a quotation", {}, "> a quotation", False),
        ("here", {"msgtype": "m.location", "geo_uri": "geo:1,2"}, "here (geo:1,2)", False),
        ("waves", {"msgtype": "m.emote"}, "waves", False),
    ],
)
async def test_the_words_and_whom_they_are_for(tmp_path, text, content, words, addressed):
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say(text, chat=GROUP, group=True, **content)
        (said,) = await at.until(Said)

    assert (said.text, said.addressed) == (words, addressed)


async def test_a_reply_to_the_agent_is_for_it(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        root = await at.platform.say("Hello", chat=GROUP, group=True)
        mine = at.platform.happens(GROUP, "m.room.message", {"msgtype": "m.text", "body": "Hi"}, OWN)
        for answered in (mine, root, "$nothing"):
            relation = {"m.in_reply_to": {"event_id": answered}}
            await at.platform.say("And?", chat=GROUP, **{"m.relates_to": relation})
        await at.platform.say("In its thread", chat=GROUP, thread=mine)
        said = await at.until(Said, 5)

    assert [each.addressed for each in said[1:]] == [True, False, False, True]


async def test_a_room_of_two_in_which_somebody_else_is_one_day_is_that_one_s_own_conversation(tmp_path):
    bob = "@bob:hermes.test"
    rules = Access(settings=ChannelSettings(owners=(ANN,), members=(bob,)))
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("Mine alone")
        await at.until(Said)
        del at.platform.rooms[ROOM].people[ANN]
        for user, membership in ((bob, "join"), (ANN, "leave")):
            at.platform.happens(ROOM, "m.room.member", {"membership": membership}, user, state_key=user)
        await at.platform.say("What did she say?", user=bob)
        said = await at.until(Said, 2)

    ann, other = [rules.conversation(each.where, each.sender, Standing.MEMBER) for each in said]
    assert [each.where.chat_kind for each in said] == ["dm", "dm"]
    assert ann.place == other.place
    assert ann.key != other.key


async def test_programs_are_told_from_people(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("I am a program", msgtype="m.notice")
        await at.platform.say("I too", **{"hermes.slot": 0})
        said = await at.until(Said, 2)

    assert [each.sender.bot for each in said] == [True, True]


async def test_what_nobody_says_is_nothing(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("my own", user=OWN)
        at.platform.happens(ROOM, "m.room.message", {}, ANN)
        at.platform.happens(ROOM, "m.sticker", {"body": "x"}, ANN)
        at.platform.happens(ROOM, "m.reaction", {"m.relates_to": {"event_id": "$1", "key": "👍"}}, ANN)
        at.platform.happens(ROOM, "m.reaction", {"m.relates_to": {"event_id": "$1", "key": "1\ufe0f\u20e3"}}, ANN)
        await at.platform.say("words")
        (said,) = await at.until(Said)

    assert said.text == "words"
    assert at.of(Pressed) == []


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("m.room.message", {"m.relates_to": "x"}),
        ("m.room.message", {"m.relates_to": {"m.in_reply_to": ["x"]}}),
        ("m.room.message", {"m.relates_to": {"rel_type": "m.replace", "event_id": "$1"}, "m.new_content": "x"}),
        ("m.room.message", {"m.mentions": "x"}),
        ("m.room.message", {"m.mentions": {"user_ids": 1}}),
        ("m.room.message", {"msgtype": "m.file", "info": "x"}),
        ("m.room.message", {"msgtype": ["m.text"]}),
        ("m.reaction", {"m.relates_to": ["x"]}),
    ],
)
async def test_what_somebody_wrote_wrong_keeps_nobody_else_from_being_heard(tmp_path, kind, content):
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("before")
        at.platform.happens(ROOM, kind, {"msgtype": "m.text", "body": "odd", **content}, ANN)
        await at.platform.say("words")
        await until(lambda: any(said.text == "words" for said in at.of(Said)))


async def test_what_answers_something_that_was_written_wrong_is_heard(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("before")
        odd = at.platform.happens(ROOM, "m.sticker", {"m.relates_to": "x"}, ANN)
        await at.platform.say("words", **{"m.relates_to": {"m.in_reply_to": {"event_id": odd}}})
        said = await at.until(Said, 2)

    assert said[1].text == "words"


async def test_a_message_that_was_changed_is_the_same_one_in_its_thread(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        first = await at.platform.say("One", chat=GROUP, group=True, thread="$root")
        relation = {"rel_type": "m.replace", "event_id": first}
        new = {"msgtype": "m.text", "body": "Two"}
        await at.platform.say("* Two", chat=GROUP, **{"m.relates_to": relation, "m.new_content": new})
        one, two = await at.until(Said, 2)

    assert (one.source_id, one.where, one.edited) == (first, two.where, "")
    assert (two.source_id, two.where.thread, two.text, bool(two.edited)) == (first, "$root", "Two", True)


async def test_nobody_changes_what_somebody_else_wrote(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        first = await at.platform.say("One", chat=GROUP, group=True)
        relation = {"rel_type": "m.replace", "event_id": first}
        new = {"msgtype": "m.text", "body": "Two"}
        await at.platform.say(
            "* Two", chat=GROUP, user="@mallory:x", **{"m.relates_to": relation, "m.new_content": new}
        )
        await at.platform.say("Three", chat=GROUP)
        said = await at.until(Said, 2)

    assert [each.text for each in said] == ["One", "Three"]


async def test_a_message_that_was_taken_back_and_a_room_that_was_replaced(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        first = await at.platform.say("One")
        at.platform.happens(ROOM, "m.room.redaction", {"redacts": first}, ANN)
        at.platform.happens(ROOM, "m.room.tombstone", {"replacement_room": "!2:hermes.test"}, ANN, state_key="")
        (removed,) = await at.until(Removed)

    (withdrawn,) = at.of(Withdrawn)
    assert (withdrawn.source_id, withdrawn.by, withdrawn.moderates) == (first, ANN, True)
    assert removed.reason == "the room was replaced by !2:hermes.test; invite me there."


async def test_files_and_spoken_words(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        at.platform.files["f1"] = b"content"
        url = "mxc://hermes.test/f1"
        info = {"mimetype": "audio/ogg; codecs=opus", "size": 7}
        await at.platform.say("a.ogg", msgtype="m.audio", url=url, info=info, **{"org.matrix.msc3245.voice": {}})
        await at.platform.say("look", msgtype="m.image", filename="a.png", url=url, info={"size": "big"})
        one, two = await at.until(Said, 2)
        assert await at.channel.fetch(one.media[0], 10**9) == b"content"

    assert (one.text, one.media[0].voice, one.media[0].media_type, one.media[0].size) == ("", True, "audio/ogg", 7)
    assert (two.text, two.media[0].name, two.media[0].voice, two.media[0].size) == ("look", "a.png", False, 0)


async def test_what_is_said_to_it_in_a_group_begins_a_thread_where_that_is_wanted(tmp_path):
    async with hearing(tmp_path, threads="yes") as at, at.listening():
        first = await at.platform.say("Hermes: hello", chat=GROUP, group=True)
        await at.platform.say("others talk", chat=GROUP)
        await at.platform.say("Hermes: alone", chat=ROOM)
        said = await at.until(Said, 3)

    assert {(each.where.chat, each.where.thread) for each in said} == {(GROUP, first), (GROUP, ""), (ROOM, "")}


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["\ud800", OWN, ANN, "m.text", "m.image", "m.replace", "m.thread", "$1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=12,
)
EVENTS = st.builds(
    lambda event, content, relation: {**event, "content": {**content, "m.relates_to": relation}},
    st.fixed_dictionaries(
        {"type": st.sampled_from(["m.room.message", "m.reaction", "m.room.redaction", "m.room.tombstone"])},
        optional=dict.fromkeys(("sender", "event_id", "origin_server_ts", "redacts", "unsigned"), ODD),
    ),
    st.dictionaries(st.sampled_from(NAMES), ODD, max_size=6),
    ODD,
)


class Answering:
    """A homeserver that answers everything with the same odd thing."""

    def __init__(self, answer: dict) -> None:
        self.answer = answer

    async def call(self, *_: object, **__: object) -> dict:
        return self.answer


@given(EVENTS, st.dictionaries(st.sampled_from(NAMES), ODD, max_size=6))
@settings(max_examples=120, deadline=None)
def test_whatever_somebody_wrote_is_heard_or_passed_over(event, answer):
    async def nothing(_: object, most: int) -> bytes:
        return b""

    rooms = Rooms(Answering(answer))
    rooms.own = OWN
    reader = Reader(own=OWN, name="Hermes", rooms=rooms, moves=ChatMigration(FakeKept(), "x"), threads=True)
    heard = asyncio.run(reader.heard(ROOM, event))

    assert heard is None or str(heard).encode()
