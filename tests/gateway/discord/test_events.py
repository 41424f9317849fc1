"""What Discord tells becomes what the gateway understands, or nothing."""

import pytest

from hermes_agent.gateway.channel import Pressed, Removed, Said, Withdrawn
from hermes_agent.gateway.discord.events import Place, Reader, plain, singly


async def place(channel: str) -> Place:
    return Place(parent="9" if channel == "4" else "", name=f"name of {channel}")


async def role(server: str) -> str:
    return "6" if server == "77" else ""


READER = Reader(own="42", place=place, role=role, now=lambda: 5.0)
ANN = {"id": "7", "username": "ann", "global_name": "Ann"}
HELLO = {"id": "100", "channel_id": "1", "author": ANN, "content": "hello", "timestamp": "1970-01-01T00:01:00+00:00"}


async def said(**more) -> Said:
    found = await READER.heard("MESSAGE_CREATE", {**HELLO, **more})
    assert isinstance(found, Said)
    return found


async def test_a_message_is_heard():
    found = await said()

    assert (found.where.chat_kind, found.where.chat, found.at, found.sender.name) == ("dm", "1", 60.0, "Ann")


async def test_a_thread_is_told_with_its_channel_and_a_nickname_with_its_roles():
    found = await said(channel_id="4", guild_id="77", member={"nick": "Annie", "roles": ["5", "6"]})

    assert (found.where.chat_kind, found.where.chat, found.where.thread) == ("group", "9", "4")
    assert (found.sender.name, found.sender.groups) == ("Annie", ("5", "6"))


async def test_a_mention_and_a_reply_are_said_to_it():
    mentioned = await said(
        content="<@42> do it with <@!8> <:wave:1>", mentions=[{"id": "42"}, {"id": "8", "username": "bob"}]
    )
    replied = await said(type=19, referenced_message={"author": {"id": "42"}})

    assert (mentioned.addressed, mentioned.text) == (True, "do it with @bob :wave:")
    assert replied.addressed
    assert not (await said()).addressed


async def test_other_bots_and_webhooks_are_told_to_be_some():
    assert (await said(author={**ANN, "bot": True})).sender.bot
    assert (await said(webhook_id="3")).sender.bot


@pytest.mark.parametrize("more", [{"author": {"id": "42"}}, {"author": {}}, {"type": 7}])
async def test_what_is_nothing_to_it_is_nothing(more):
    assert await READER.heard("MESSAGE_CREATE", {**HELLO, **more}) is None


async def test_an_edit_is_told_and_the_preview_of_a_link_is_not():
    edited = await READER.heard("MESSAGE_UPDATE", {**HELLO, "edited_timestamp": "x"})

    assert isinstance(edited, Said)
    assert edited.edited == "x"
    assert await READER.heard("MESSAGE_UPDATE", {**HELLO, "edited_timestamp": None}) is None


async def test_deletions_and_farewells_are_told():
    assert isinstance(await READER.heard("MESSAGE_DELETE", {"id": "100", "channel_id": "1"}), Withdrawn)
    assert isinstance(await READER.heard("CHANNEL_DELETE", {"id": "1", "guild_id": "77"}), Removed)
    gone = await READER.heard("THREAD_DELETE", {"id": "4", "parent_id": "9", "guild_id": "77"})
    assert isinstance(gone, Removed)
    assert (gone.where.chat, gone.where.thread) == ("9", "4")
    assert await READER.heard("TYPING_START", {}) is None


async def test_files_come_with_where_they_are_and_an_odd_time_is_now():
    file = {"filename": "a.ogg", "content_type": "audio/ogg; codecs=opus", "size": 5, "url": "u"}
    found = await said(attachments=[file, {}], flags=1 << 13, timestamp="never")

    assert [(each.name, each.media_type, each.voice) for each in found.media] == [
        ("a.ogg", "audio/ogg", True),
        ("file", "application/octet-stream", True),
    ]
    assert found.media[0].reference == "u"
    assert found.at == 5.0


async def test_a_button_in_a_server_is_pressed_by_a_member():
    member = {"user": ANN, "nick": None, "roles": ["5"]}
    data = {
        "id": "3",
        "type": 3,
        "channel_id": "1",
        "guild_id": "77",
        "member": member,
        "data": {"custom_id": "hermes:8:1"},
    }

    found = await READER.heard("INTERACTION_CREATE", data)

    assert isinstance(found, Pressed)
    assert (found.slot, found.choice, found.sender.user, found.sender.groups) == (8, 1, "7", ("5",))


@pytest.mark.parametrize(
    "more", [{"type": 2}, {"data": {"custom_id": "x:1:1"}}, {"data": {"custom_id": "hermes:a:1"}}, {"data": {}}]
)
async def test_a_button_of_another_kind_is_nothing(more):
    data = {"id": "3", "type": 3, "channel_id": "1", "data": {"custom_id": "hermes:8:1"}, **more}

    assert await READER.heard("INTERACTION_CREATE", data) is None


def test_somebody_unknown_is_a_number():
    assert plain("<@8> and <@42>", "42", {}) == "@8 and"


def test_what_a_moderator_deletes_at_once_is_told_one_by_one():
    many = {"ids": ["1", "2"], "channel_id": "9"}

    assert [(name, each["id"]) for name, each in singly("MESSAGE_DELETE_BULK", many)] == [
        ("MESSAGE_DELETE", "1"),
        ("MESSAGE_DELETE", "2"),
    ]
    assert list(singly("MESSAGE_DELETE", {"id": "1"})) == [("MESSAGE_DELETE", {"id": "1"})]


async def test_what_is_forwarded_is_told_to_be():
    inside = {"content": "see <@8>", "attachments": [{"filename": "a.txt", "url": "u"}]}
    found = await said(content="", message_snapshots=[{"message": inside}])

    assert (found.forwarded, found.text) == (True, "see @8")
    assert [media.name for media in found.media] == ["a.txt"]
    assert not (await said()).forwarded


async def test_what_a_message_replies_to_is_heard_with_it():
    replied = {"author": {"id": "8"}, "content": "see <@9>", "mentions": [{"id": "9", "username": "bob"}]}
    files = [{"filename": "a.txt", "url": "u"}]
    found = await said(type=19, referenced_message={**replied, "attachments": files})

    assert found.quoted is not None
    assert (found.quoted.text, [media.name for media in found.quoted.media]) == ("see @bob", ["a.txt"])
    assert (await said(type=19, referenced_message={**replied, "author": {"id": "42"}})).quoted is None
    assert (await said()).quoted is None


@pytest.mark.parametrize(
    ("guild", "called", "addressed", "text"),
    [("77", "6", True, "do it"), ("77", "5", False, "<@&5> do it"), ("78", "6", False, "<@&6> do it")],
)
async def test_the_role_of_the_agent_is_its_name_too(guild, called, addressed, text):
    found = await said(guild_id=guild, content=f"<@&{called}> do it", mention_roles=[called])

    assert (found.addressed, found.text) == (addressed, text)
