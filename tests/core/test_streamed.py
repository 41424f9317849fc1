"""Words of a run on their way into a stream: none twice, none lost, none taken back."""

import pytest

from hermes_agent.core.events import Replied, TurnStarted
from hermes_agent.core.messages import Message, Retrying, Role, StopReason, Text, TextDelta, Usage
from hermes_agent.core.streamed import Words


def delta(text: str) -> TextDelta:
    return TextDelta(text=text)


def whole(text: str, stop: StopReason = StopReason.END) -> Replied:
    message = Message(role=Role.ASSISTANT, parts=(Text(text=text),))
    return Replied(
        turn=1, call_id="", message=message, stop=stop, usage=Usage(), provider="", model="", cost=None, seconds=0.0
    )


BEGUN = TurnStarted(turn=1, call_id="", messages=1)
AGAIN = Retrying(reason="", attempt=2, delay=0.0)


@pytest.mark.parametrize(
    ("events", "sent"),
    [
        ([delta("a"), delta("b"), whole("ab")], "ab"),
        ([whole("ab")], "ab"),
        ([delta("a"), whole("ab")], "ab"),
        ([delta("a"), whole("a"), delta("b"), whole("b")], "a\n\nb"),
        ([whole("a"), whole("b")], "a\n\nb"),
        ([delta("a"), whole("a", StopReason.LENGTH), delta("b"), whole("b")], "ab"),
        ([delta("ab"), AGAIN, delta("a"), delta("bc"), whole("abc")], "abc"),
        ([delta("ab"), AGAIN, delta("x"), delta("y"), whole("xy")], "ab\n\nxy"),
        ([delta("ab"), BEGUN, delta("a"), delta("bc"), whole("abc")], "abc"),
        ([AGAIN, delta("a"), whole("a")], "a"),
        ([delta("ab"), whole("xy")], "ab"),
    ],
)
def test_what_is_sent(events, sent):
    words = Words()
    assert "".join(words.take(each) for each in (BEGUN, *events)) == sent


@pytest.mark.parametrize(
    ("events", "sent"),
    [
        ([delta("b"), delta("c"), whole("abc")], "abc"),
        ([delta("b"), AGAIN, delta("x"), whole("xy"), BEGUN, delta("a"), whole("ab")], "xy\n\nab"),
        ([whole("a"), delta("c"), whole("bc")], "a\n\nbc"),
    ],
)
def test_who_comes_in_the_middle_of_a_turn_gets_its_words_whole(events, sent):
    words = Words()
    assert "".join(words.take(each) for each in events) == sent


@pytest.mark.parametrize(
    ("events", "end", "rest"),
    [
        ([whole("ab")], "ab", ""),
        ([whole("a", StopReason.LENGTH), whole("b")], "ab", ""),
        ([whole("ab")], "ab\n\nStopped.", "\n\nStopped."),
        ([whole("ab")], "Stopped.", "\n\nStopped."),
        ([], "Stopped.", "Stopped."),
        ([whole("ab")], "", ""),
    ],
)
def test_what_is_left_for_the_end(events, end, rest):
    words = Words()
    for each in events:
        words.take(each)
    assert words.rest(end) == rest
