"""A message as arguments of the Bot API: its buttons, what it answers, and in which life of a group it stands."""

import pytest

from hermes_agent.core.inbound import Conversation
from hermes_agent.core.outbound import Button
from hermes_agent.gateway.channel import MessageGone, Part
from hermes_agent.gateway.telegram.writing import draft_id, keyboard, message_at, place, receipt_of, reply_to

GROUP = Conversation(platform="telegram", chat_kind="group", chat="-1", thread="4")


@pytest.mark.parametrize(("label", "rows"), [("Yes", [2]), ("Yes, for this conversation", [1, 1])])
def test_narrow_buttons_share_a_row(label: str, rows: list[int]):
    part = Part(text="May I?", buttons=(Button(label=label, value="y"), Button(label="No", value="n")), slot=3)
    shown = keyboard(part)["reply_markup"]["inline_keyboard"]

    assert [len(row) for row in shown] == rows
    assert [key["callback_data"] for row in shown for key in row] == ["3.0", "3.1"]
    assert keyboard(Part(text="Done")) == {}


def test_a_message_is_changed_in_the_group_in_which_it_stands_alone():
    old, new = receipt_of(GROUP, "-1", {"message_id": 5}), receipt_of(GROUP, "-100", {"message_id": 5})
    assert (old, new) == ("5", "-100:5")

    assert message_at(GROUP, "-100", new) == {"chat_id": "-100", "message_id": 5}
    with pytest.raises(MessageGone, match="was before"):
        message_at(GROUP, "-100", old)
    with pytest.raises(MessageGone, match="no message x"):
        message_at(GROUP, "-1", "x")


@pytest.mark.parametrize(("answers", "number"), [("-1:7", 7), ("7", 7), ("-9:7", 0), ("", 0), ("x", 0)])
def test_what_stands_elsewhere_is_not_replied_to(answers: str, number: int):
    found = reply_to(Part(text="x", answers=answers), "-1")

    assert found.get("reply_parameters", {}).get("message_id", 0) == number


def test_a_topic_is_named_and_a_draft_keeps_its_number():
    assert place(GROUP, "-1") == {"chat_id": "-1", "message_thread_id": 4}
    assert draft_id("k") == draft_id("k") > 0
