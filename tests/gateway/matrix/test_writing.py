import json

from hermes_agent.core.inbound import Conversation
from hermes_agent.core.outbound import Attachment, Button
from hermes_agent.gateway.channel import Part
from hermes_agent.gateway.matrix.writing import (
    LARGEST,
    SIGNS,
    changed,
    file,
    once,
    placed,
    reaction,
    transaction,
    words,
)

ROOM = Conversation(platform="matrix", chat="!1:x")


def test_a_text_mentions_nobody_and_is_formatted():
    made = words(Part(text="**Hi** @room\x00 @ann:x"))

    assert made["m.mentions"] == {}
    assert made["body"] == "**Hi** @room @ann:x"
    assert made["formatted_body"].startswith("<p><strong>Hi</strong>")


def test_choices_are_listed_with_their_signs():
    buttons = tuple(Button(label=f"choice {number}", value="v") for number in range(12))

    made = words(Part(text="Which?", buttons=buttons, slot=5))

    assert len(set(SIGNS)) == 10
    assert made["body"].splitlines()[2] == "1\ufe0f\u20e3 choice 0"
    assert made["body"].splitlines()[-1] == "\U0001f51f choice 9"
    assert made["hermes.slot"] == 5


def test_what_formatting_makes_too_large_goes_out_plain():
    made = words(Part(text='"' * 16_000))

    assert "formatted_body" not in made
    assert len(json.dumps(changed(made, "$1"))) < LARGEST


def test_a_file_has_its_name_and_its_words():
    attached = Attachment(path="/x", name="a.png", media_type="image/png")
    made = file(Part(text="See", file=attached), attached, 3, {"url": "mxc://x/1"})
    bare = file(Part(text="", file=attached), attached, 3, {"url": "mxc://x/1"})

    assert (made["msgtype"], made["body"], made["filename"], made["info"]["size"]) == ("m.image", "See", "a.png", 3)
    assert bare["body"] == "a.png"


def test_an_answer_stands_in_its_thread_or_replies():
    thread = Conversation(platform="matrix", chat="!1:x", thread="$root")

    assert placed({}, ROOM, "") == {}
    assert placed({}, ROOM, "$1") == {"m.relates_to": {"m.in_reply_to": {"event_id": "$1"}}}
    inside = placed({}, thread, "$1")["m.relates_to"]
    assert (inside["event_id"], inside["is_falling_back"], inside["m.in_reply_to"]) == (
        "$root",
        False,
        {"event_id": "$1"},
    )
    assert placed({}, thread, "")["m.relates_to"]["is_falling_back"] is True


def test_one_key_is_one_transaction_and_edits_are_each_their_own():
    assert transaction("a") == transaction("a") != transaction("b")
    assert once() != once()
    assert reaction("$1", "x")["m.relates_to"]["event_id"] == "$1"
