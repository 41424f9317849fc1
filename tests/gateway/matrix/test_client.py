import json

import pytest

from hermes_agent.core.chat import Attachment, Button, Conversation
from hermes_agent.gateway.channel import MessageGone, NeverHere, Part, TokenRefused
from hermes_agent.gateway.matrix.client import (
    LARGEST,
    SIGNS,
    Client,
    changed,
    count,
    file,
    inside,
    joined,
    meaning,
    number,
    once,
    placed,
    reaction,
    table,
    tables,
    text,
    transaction,
    words,
)
from hermes_agent.gateway.service import Answer, Service
from tests.gateway.matrix.hearing import hearing


def answer(status: int, body: bytes) -> Answer:
    return Answer(status=status, headers={}, body=body)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (403, b'{"errcode": "M_FORBIDDEN", "error": "not in room"}', NeverHere),
        (403, b'{"errcode": "M_USER_DEACTIVATED"}', TokenRefused),
        (404, b'{"errcode": "M_NOT_FOUND"}', MessageGone),
        (400, b'{"errcode": "M_UNKNOWN", "error": "no such relation"}', MessageGone),
        (413, b'{"errcode": "M_TOO_LARGE"}', NeverHere),
        (400, b"<html>", NeverHere),
        (400, b"[]", NeverHere),
    ],
)
def test_an_error_is_what_it_means(status, body, kind):
    assert type(meaning(answer(status, body))) is kind


def test_ids_are_harmless_in_addresses():
    assert joined("rooms", "!a/b:x", "$é") == "rooms/%21a%2Fb%3Ax/%24%C3%A9"


@pytest.mark.parametrize("address", ["https://x.test/a", "mxc://x", "mxc://x/a/b", ""])
async def test_a_file_is_asked_for_only_by_an_address_of_matrix(tmp_path, address):
    async with hearing(tmp_path) as at:
        client = Client(Service(title="x", http=at.needs.http, base=at.platform.url, meaning=meaning))
        with pytest.raises(NeverHere, match="no address"):
            await client.download(address, 10**9)


async def test_a_file_that_is_not_given_out_is_said_to_be(tmp_path):
    async with hearing(tmp_path) as at:
        headers = {"Authorization": "Bearer x"}
        client = Client(Service(title="x", http=at.needs.http, headers=headers, base=at.platform.url, meaning=meaning))
        with pytest.raises(NeverHere, match="404"):
            await client.download("mxc://hermes.test/nothing", 10**9)


@pytest.mark.parametrize("odd", [None, 5, "x", [], {}, True, 1e400, float("nan"), -3, 10**400])
def test_whatever_stands_there_something_of_its_kind_comes_back(odd):
    assert isinstance(table(odd), dict)
    assert isinstance(inside(odd, "a", "b"), dict)
    assert all(isinstance(each, dict) for each in tables(odd))
    assert isinstance(text(odd), str)
    assert number(odd) == number(odd)
    assert count(odd) >= 0


def test_what_is_there_is_found():
    assert inside({"a": {"b": {"c": 1}}}, "a", "b") == {"c": 1}
    assert tables([{"a": 1}, "x"]) == [{"a": 1}]
    assert (text("x"), number(5), count(7), count(-7), count(True)) == ("x", 5.0, 7, 0, 0)


def test_half_a_sign_is_shown_as_one_that_cannot_be_read():
    assert text("a\ud800b").encode() == "a\ufffdb".encode()


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
