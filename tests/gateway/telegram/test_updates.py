"""What the Bot API tells is heard as what people did."""

from typing import Any

import pytest

from hermes_agent.gateway.channel import Pressed, Removed, Said
from hermes_agent.gateway.telegram.updates import Me, heard_in

ME = Me(id=42, name="hermes_bot")
PRIVATE = {"id": 7, "type": "private"}
GROUP = {"id": -9, "type": "supergroup"}


def said(**fields: object) -> Said | None:
    ann = {"id": 7, "first_name": "Ann", "last_name": "B"}
    message = {"message_id": 5, "date": 100, "chat": PRIVATE, "from": ann, **fields}
    found = heard_in({"update_id": 1, "message": message}, ME)
    assert found is None or isinstance(found, Said)
    return found


def entity(kind: str, offset: int, length: int, **more: object) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length, **more}


def test_words_in_a_private_chat_are_for_the_bot():
    found = said(text="Hi")

    assert found is not None
    assert (found.text, found.source_id, found.addressed, found.sender.name) == ("Hi", "7:5", True, "Ann B")


@pytest.mark.parametrize(
    ("fields", "text", "addressed"),
    [
        ({"text": "hi all"}, "hi all", False),
        ({"text": "👍 @hermes_bot hi", "entities": [entity("mention", 3, 11)]}, "👍  hi", True),
        ({"text": "@other hi", "entities": [entity("mention", 0, 6)]}, "@other hi", False),
        ({"text": "You hi", "entities": [entity("text_mention", 0, 3, user={"id": 42})]}, "hi", True),
        ({"text": "/new@Hermes_bot x", "entities": [entity("bot_command", 0, 15)]}, "/new x", True),
        ({"text": "/new x", "entities": [entity("bot_command", 0, 4)]}, "/new x", False),
        ({"text": "yes", "reply_to_message": {"from": {"id": 42}}}, "yes", True),
    ],
)
def test_a_group_names_the_bot(fields: dict[str, Any], text: str, addressed: bool):
    found = said(chat=GROUP, **fields)

    assert found is not None
    assert (found.text, found.addressed, found.where.chat_kind) == (text, addressed, "group")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"location": {"latitude": 52.5, "longitude": 13.4}}, "(A place: 52.5, 13.4)"),
        (
            {"location": {"latitude": 1, "longitude": 2}, "venue": {"title": "Inn", "address": "1 Road"}},
            "(A place: Inn, 1 Road, 1, 2)",
        ),
        ({"contact": {"first_name": "Bo", "phone_number": "+1 2"}}, "(A contact: Bo, +1 2)"),
        ({"sticker": {"file_id": "s", "emoji": "👍"}}, "👍"),
        (
            {"poll": {"question": "When?", "options": [{"text": "Now"}, {"text": "Later"}]}},
            "(A poll: When? Now, Later)",
        ),
        ({"dice": {"emoji": "🎲", "value": 5}}, "🎲 5"),
    ],
)
def test_what_is_said_without_words_is_heard_in_words(fields: dict[str, Any], text: str):
    found = said(**fields)

    assert found is not None
    assert found.text == text


def test_a_round_video_is_a_file():
    found = said(video_note={"file_id": "n", "length": 240})

    assert found is not None
    assert [(media.name, media.media_type) for media in found.media] == [("video_note.mp4", "video/mp4")]


def test_a_command_for_another_bot_is_not_heard():
    assert said(chat=GROUP, text="/new@other_bot", entities=[entity("bot_command", 0, 14)]) is None


@pytest.mark.parametrize("fields", [{"new_chat_title": "x"}, {"text": ""}])
def test_what_says_nothing_is_not_heard(fields: dict[str, Any]):
    assert said(**fields) is None


def test_a_post_of_nobody_is_not_heard():
    assert heard_in({"message": {"message_id": 1, "date": 1, "chat": GROUP, "text": "x"}}, ME) is None
    assert heard_in({"poll": {}}, ME) is None


def test_a_topic_is_a_thread():
    found = said(chat=GROUP, text="hi", message_thread_id=3, is_topic_message=True)
    other = said(chat=GROUP, text="hi", message_thread_id=3)

    assert found is not None
    assert other is not None
    assert (found.where.thread, other.where.thread) == ("3", "")


async def test_files_come_with_their_facts_and_are_fetched_when_asked_for():
    found = said(
        caption="look",
        photo=[{"file_id": "small", "width": 1}, {"file_id": "large", "width": 9, "file_size": 5}],
        document={"file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf"},
        voice={"file_id": "v"},
    )

    assert found is not None
    assert [(media.name, media.media_type, media.voice) for media in found.media] == [
        ("photo.jpg", "image/jpeg", False),
        ("a.pdf", "application/pdf", False),
        ("voice.ogg", "audio/ogg", True),
    ]
    assert found.media[0].reference == "large"


def test_an_edit_is_told_under_the_same_identity():
    message = {"message_id": 5, "date": 100, "edit_date": 200, "chat": PRIVATE, "from": {"id": 7}, "text": "new"}
    found = heard_in({"edited_message": message}, ME)

    assert isinstance(found, Said)
    assert (found.edited, found.source_id, found.at) == ("200", "7:5", 200.0)


@pytest.mark.parametrize("data", ["", "x.1", "5", "5.y"])
def test_a_button_of_another_program_is_not_heard(data: str):
    query = {"id": "1", "from": {"id": 7}, "data": data, "message": {"message_id": 5, "chat": PRIVATE, "date": 1}}

    assert heard_in({"callback_query": query}, ME) is None


def test_a_button_is_heard():
    query = {"id": "1", "from": {"id": 7}, "data": "5.1", "message": {"message_id": 5, "chat": PRIVATE, "date": 1}}
    found = heard_in({"callback_query": query}, ME)

    assert isinstance(found, Pressed)
    assert (found.slot, found.choice) == (5, 1)


@pytest.mark.parametrize(("status", "heard"), [("kicked", True), ("member", False)])
def test_who_puts_the_bot_out_is_heard(status: str, heard: bool):
    changed = {"chat": GROUP, "new_chat_member": {"status": status}}

    assert isinstance(heard_in({"my_chat_member": changed}, ME), Removed) is heard


BO: dict[str, Any] = {"from": {"id": 8}}


@pytest.mark.parametrize(
    ("fields", "quoted"),
    [
        ({"reply_to_message": {**BO, "text": "At nine"}}, ("At nine", 0)),
        ({"reply_to_message": {**BO, "caption": "Me", "photo": [{"file_id": "p"}]}}, ("Me", 1)),
        ({"reply_to_message": {**BO, "text": "At nine"}, "quote": {"text": "nine"}}, ("nine", 0)),
        ({"external_reply": {"origin": {}}, "quote": {"text": "nine"}}, ("nine", 0)),
        ({"reply_to_message": {"from": {"id": 42}, "text": "At nine"}, "quote": {"text": "nine"}}, ("nine", 0)),
        ({"reply_to_message": {"from": {"id": 42}, "text": "At nine"}}, None),
        ({"reply_to_message": {**BO, "forum_topic_created": {"name": "x"}}}, None),
        ({}, None),
    ],
)
def test_what_a_message_replies_to_is_heard_with_it(fields: dict[str, Any], quoted: tuple[str, int] | None):
    found = said(chat=GROUP, text="What time?", **fields)

    assert found is not None
    assert (found.quoted and (found.quoted.text, len(found.quoted.media))) == quoted


def test_what_is_forwarded_is_told_to_be():
    for mark in ({"forward_origin": {"type": "hidden_user"}}, {"forward_date": 1}):
        found = said(text="/stop", **mark)
        assert found is not None
        assert found.forwarded
    assert not said(text="Hi").forwarded


def test_a_button_with_a_number_that_is_none_is_not_heard():
    query = {"id": "1", "from": {"id": 7}, "data": f"{'9' * 60}.0", "message": {"chat": {"id": 1, "type": "private"}}}
    assert heard_in({"callback_query": query}, ME) is None
