"""What Slack tells becomes what the gateway understands, or nothing."""

import pytest

from hermes_agent.gateway.channel import (
    MessageGone,
    NeverHere,
    NotNow,
    OutcomeUnknown,
    Pressed,
    Removed,
    Said,
    TokenRefused,
    Withdrawn,
)
from hermes_agent.gateway.service import Service
from hermes_agent.gateway.slack.events import Own, Reader, Web, form, meaning, mrkdwn, plain
from hermes_agent.host.http import Http
from hermes_agent.host.inbound.listener import serve
from hermes_agent.host.inbound.message import Request, Response


async def name(user: str) -> str:
    return f"name of {user}"


async def file(told):
    return told


async def title(channel: str) -> str:
    return f"title of {channel}"


READER = Reader(own=Own(user="U0", bot="B0", threads=True), name=name, title=title, file=file, now=lambda: 5.0)
HELLO = {"type": "message", "channel": "C1", "user": "U7", "text": "hello", "ts": "10.5"}


async def event(**more):
    return await READER.heard("events_api", {"event": {**HELLO, **more}})


async def test_a_message_in_a_channel_is_a_groups():
    said = await event()

    assert isinstance(said, Said)
    assert (said.where.chat_kind, said.where.thread, said.addressed) == ("group", "", False)
    assert (said.sender.name, said.at, said.source_id) == ("name of U7", 10.5, "C1:10.5")


async def test_what_is_said_to_it_in_a_channel_begins_a_thread():
    said = await event(text="<@U0> hello")

    assert isinstance(said, Said)
    assert (said.where.thread, said.addressed, said.text) == ("10.5", True, "hello")


async def test_an_answer_in_its_thread_is_said_to_it():
    said = await event(thread_ts="3.0", parent_user_id="U0")

    assert isinstance(said, Said)
    assert (said.where.thread, said.addressed) == ("3.0", True)


async def test_a_mention_that_is_told_as_an_event_of_its_own_is_the_same_message():
    assert await event(type="app_mention") == await event()


@pytest.mark.parametrize(
    "more",
    [
        {"user": "U0"},
        {"bot_id": "B0", "user": ""},
        {"user": ""},
        {"ts": ""},
        {"subtype": "channel_join"},
        {"type": "reaction_added"},
        {"type": "member_left_channel"},
        {"subtype": "message_changed", "message": {"text": "a"}, "previous_message": {"text": "a"}},
    ],
)
async def test_what_is_nothing_to_it_is_nothing(more):
    assert await event(**more) is None


async def test_another_bot_is_told_to_be_one():
    said = await event(subtype="bot_message", bot_id="B5", user="")

    assert isinstance(said, Said)
    assert (said.sender.bot, said.sender.user, said.sender.name) == (True, "B5", "")


async def test_an_edit_is_the_same_message_with_a_new_text():
    now = {"user": "U7", "text": "bye", "ts": "10.5"}
    said = await event(subtype="message_changed", message=now, previous_message={"text": "hello"})

    assert isinstance(said, Said)
    assert (bool(said.edited), said.text, said.source_id) == (True, "bye", "C1:10.5")


async def test_a_mention_that_an_edit_adds_is_one_message_however_it_is_told():
    now = {"user": "U7", "text": "<@U0> bye", "ts": "10.5", "edited": {"user": "U7", "ts": "11.0"}}
    changed = await event(subtype="message_changed", message=now, previous_message={"text": "bye"})
    mention = await event(type="app_mention", **now)

    assert isinstance(changed, Said)
    assert isinstance(mention, Said)
    assert mention.edited == changed.edited == "11.0"
    assert (mention.source_id, mention.text) == (changed.source_id, changed.text)


async def test_a_deletion_and_a_farewell_are_told():
    assert isinstance(gone := await event(subtype="message_deleted", deleted_ts="10.5"), Withdrawn)
    assert gone.source_id == "C1:10.5"
    assert isinstance(await event(type="channel_archive"), Removed)
    assert isinstance(await event(type="member_left_channel", user="U0"), Removed)


async def test_a_deleted_message_that_begins_a_thread_is_told_too():
    stone = {"subtype": "tombstone", "user": "USLACKBOT", "text": "This message was deleted.", "ts": "10.5"}
    before = {"user": "U7", "text": "hello", "thread_ts": "10.5"}
    gone = await event(subtype="message_changed", message=stone, previous_message=before)

    assert isinstance(gone, Withdrawn)
    assert (gone.source_id, gone.where.thread) == ("C1:10.5", "10.5")


@pytest.mark.parametrize("before", [{"user": "U0"}, {"bot_id": "B0"}])
async def test_what_it_takes_away_itself_is_nothing_to_it(before):
    assert await event(subtype="message_deleted", deleted_ts="10.5", previous_message=before) is None


async def test_files_come_with_where_they_are():
    file = {"name": "a.m4a", "mimetype": "audio/mp4", "size": 7, "url_private_download": "u", "subtype": "slack_audio"}
    said = await event(subtype="file_share", files=[file, {"id": "F2"}])

    assert isinstance(said, Said)
    assert [(media.name, media.size, media.voice) for media in said.media] == [("a.m4a", 7, True), ("F2", 0, False)]
    assert said.media[0].reference == "u"


@pytest.mark.parametrize(
    ("command", "text", "line"),
    [("/hermes", "stop", "/stop"), ("/hermes", "/new x", "/new x"), ("/hermes", "", "/help"), ("/stop", "", "/stop")],
)
async def test_a_slash_command_is_one(command, text, line):
    payload = {"command": command, "text": text, "trigger_id": "1.2", "user_id": "U7", "channel_id": "D1"}
    said = await READER.heard("slash_commands", payload)

    assert isinstance(said, Said)
    assert (said.text, said.where.chat_kind, said.addressed, said.at) == (line, "dm", True, 5.0)


async def test_a_command_without_a_name_is_none():
    assert await READER.heard("slash_commands", {}) is None


async def test_a_button_in_a_thread_is_pressed():
    payload = {
        "type": "block_actions",
        "user": {"id": "U7"},
        "container": {"channel_id": "C1", "message_ts": "1.0", "thread_ts": "0.5"},
        "actions": [{"action_id": "hermes:12:1", "action_ts": "3.5"}],
    }
    pressed = await READER.heard("interactive", payload)

    assert isinstance(pressed, Pressed)
    assert (pressed.slot, pressed.choice, pressed.where.thread, pressed.at) == (12, 1, "0.5", 3.5)


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "view_submission"},
        {"type": "block_actions", "actions": []},
        {"type": "block_actions", "actions": [{"action_id": "other:1:1"}]},
        {"type": "block_actions", "actions": [{"action_id": "hermes:x:1"}]},
    ],
)
async def test_a_button_of_another_app_is_nothing(payload):
    assert await READER.heard("interactive", payload) is None


async def test_an_envelope_of_an_unknown_kind_is_nothing():
    assert await READER.heard("new_thing", {}) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**bold** and *italic* and ~~gone~~", "*bold* and _italic_ and ~gone~"),
        ("# A *title*\ntext", "*A _title_*\ntext"),
        ("- one\n- two", "• one\n• two"),
        ("[here](https://x.test/a|b)", "<https://x.test/a%7Cb|here>"),
        ("```python\na < b and **c**\n```", "```\na &lt; b and **c**\n```"),
        ("`a*b*c`", "`a*b*c`"),
        ("> quoted", "> quoted"),
        ("2 * 3 * 4 and a_b_c", "2 * 3 * 4 and a_b_c"),
        ("**[a](https://x.test)**", "*<https://x.test|a>*"),
        ("# see `code`", "*see `code`*"),
        ("\0000\0", "0"),
    ],
)
def test_markdown_is_shown(text, shown):
    assert mrkdwn(text) == shown


@pytest.mark.parametrize("text", ["<@U1>", "<!channel>", "<!here|x>", "<#C1>", "**<@U1>**", "`<@U1>`"])
def test_nobody_is_mentioned(text):
    assert "<" not in mrkdwn(text)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("<@U0> do it", "do it"),
        ("ask <@U1|ann> or <@U2>", "ask @ann or @U2"),
        ("<!here> and <!subteam^S1|@team> in <#C1|general>", "@here and @@team in #general"),
        (
            "<https://x.test|x.test> <https://y.test|why>",
            "https://x.test why (https://y.test)",
        ),
        ("a &lt;b&gt; &amp;amp;", "a <b> &amp;"),
    ],
)
def test_what_people_write_is_read(written, text):
    assert plain(written, "U0") == text


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("token_revoked", TokenRefused),
        ("ratelimited", NotNow),
        ("internal_error", OutcomeUnknown),
        ("message_not_found", MessageGone),
        ("channel_not_found", NeverHere),
        ("something_new", NeverHere),
    ],
)
def test_an_error_means(name, kind):
    assert isinstance(meaning(name, {}), kind)


def test_arguments_are_a_form():
    assert (
        form({"text": "a&b", "blocks": [], "limit": 2, "all": True, "ts": None})
        == b"text=a%26b&blocks=%5B%5D&limit=2&all=true"
    )


def test_a_missing_scope_is_named():
    assert "files:write" in str(meaning("missing_scope", {"needed": "files:write"}))


def test_a_failed_question_is_asked_again():
    assert isinstance(meaning("fatal_error", {}, reads=True), NotNow)


@pytest.mark.parametrize(("status", "kind"), [(413, NeverHere), (403, NeverHere), (408, NotNow), (503, NotNow)])
async def test_a_file_that_the_upload_refuses_for_good_is_not_tried_for_a_day(status, kind):
    async def refuse(_: Request) -> Response:
        return Response(status=status)

    async with serve(refuse) as server:
        http = Http()
        with pytest.raises(kind):
            await Web(Service(title="Slack", http=http), server.url).upload(f"{server.url}/x", b"content")
        await http.close()
