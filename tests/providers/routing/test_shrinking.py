"""A conversation that is sent in a smaller size says so, and keeps its last messages word for word."""

from hermes_agent.core.messages import File, Image, Message, Origin, Role, Text, ToolCall, ToolResult, said
from hermes_agent.providers.routing.shrinking import KEPT, LEFT_OUT, LONGEST, shrunk

LONG = ToolResult(call_id="1", name="read_file", parts=(Text(text="word " * 500, origin=Origin.TOOL),))
SHORT = ToolResult(call_id="2", name="read_file", parts=(Text(text="ok", origin=Origin.TOOL),))


def answers(*results: ToolResult) -> Message:
    return Message(role=Role.TOOL, parts=results)


def test_long_results_of_old_turns_are_cut_and_say_so():
    messages = [said("Hi"), answers(LONG), answers(SHORT), *[said(f"{n}") for n in range(KEPT[0])]]
    small = shrunk(messages, 1, len(messages))
    (part,) = small[1].parts[0].parts
    assert part == Text(text=LONG.text[:LONGEST] + LEFT_OUT, origin=Origin.TOOL)
    assert small[2] is messages[2]
    assert messages[1].parts[0] is LONG


def test_the_last_messages_stay_as_they_are_and_fewer_of_them_the_second_time():
    messages = [answers(LONG) for _ in range(20)]
    for times, kept in enumerate(KEPT, 1):
        small = shrunk(messages, times, len(messages))
        assert all(old is new for old, new in zip(messages[-kept:], small[-kept:], strict=True))
        assert small[-kept - 1] is not messages[-kept - 1]


def test_messages_after_the_shrinking_are_not_touched():
    messages = [answers(LONG) for _ in range(20)]
    assert shrunk(messages, 2, 10)[8:] == messages[8:]
    assert shrunk(messages, 0, 20) == messages


def test_pictures_and_files_become_a_line_and_calls_stay():
    call = ToolCall(id="1", name="t", arguments={})
    old = Message(role=Role.USER, parts=(Image(data="AAAA"), File(name="a.pdf", media_type="application/pdf"), call))
    (small, *_) = shrunk([old, *[said("x")] * KEPT[0]], 1, KEPT[0] + 1)
    picture, file, kept = small.parts
    assert "picture" in picture.text
    assert "a.pdf" in file.text
    assert kept is call
