"""What is kept and what is shortened, by size alone."""

from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.agent.compaction.plan import Room, cut, is_runtime, prunable
from hermes_agent.agent.compaction.settings import CompactionSettings
from hermes_agent.agent.session import pruned
from hermes_agent.core.messages import Message, Origin, Role, Text, ToolCall, ToolResult, said
from hermes_agent.core.sizes import tokens_of

ROOM = Room(limit=1000, target=500, tail=300, head=100)


def reply(text: str = "ok", *calls: str) -> Message:
    made = tuple(ToolCall(id=call, name="read", arguments={}) for call in calls)
    return Message(role=Role.ASSISTANT, parts=(Text(text=text), *made))


def result(call: str, size: int = 400) -> Message:
    words = Text(text="r" * size, origin=Origin.TOOL)
    return Message(role=Role.TOOL, parts=(ToolResult(call_id=call, name="read", parts=(words,)),))


def weigh(messages: list[Message]) -> list[int]:
    return [tokens_of(message) for message in messages]


TURNS = st.lists(
    st.one_of(
        st.integers(1, 2000).map(lambda size: [said("u" * size)]),
        st.integers(1, 2000).map(lambda size: [reply("a" * size)]),
        st.tuples(st.integers(1, 3), st.integers(1, 4000)).map(lambda drawn: ["calls", *drawn]),
    ),
    max_size=40,
)


def conversation(turns) -> list[Message]:
    messages: list[Message] = []
    for number, turn in enumerate(turns):
        if turn[0] == "calls":
            ids = [f"{number}.{place}" for place in range(turn[1])]
            messages += [reply("", *ids), *(result(each, turn[2]) for each in ids)]
        else:
            messages += turn
    return messages


@given(TURNS, st.integers(600, 200_000), st.integers(0, 4000))
def test_no_call_is_parted_from_its_result(turns, window, prefix):
    messages = conversation(turns)
    room = Room.within(window, prefix, CompactionSettings())
    plan = cut(messages, weigh(messages), room)

    assert 0 <= plan.head <= plan.upto <= len(messages)
    rest = messages[plan.upto :]
    assert not rest or rest[0].role is not Role.TOOL
    assert all(message.role is Role.USER for message in messages[: plan.head])


@given(TURNS)
def test_pruning_makes_no_message_larger_and_is_done_once(turns):
    messages = conversation(turns)
    ids = prunable(messages, weigh(messages), before=len(messages))
    after = [pruned(message, frozenset(ids)) for message in messages]

    assert all(new <= old for new, old in zip(weigh(after), weigh(messages), strict=True))
    assert prunable(after, weigh(after), before=len(after)) == ()


def test_the_last_words_of_the_person_stay_where_there_is_room():
    messages = [said("a" * 4000), *(reply("b" * 200) for _ in range(20)), said("the last"), reply("", "1"), result("1")]

    plan = cut(messages, weigh(messages), ROOM)

    assert any(message.text == "the last" for message in messages[plan.upto :])


def test_a_short_first_message_stays_with_the_notes_beside_it():
    note = Message(role=Role.USER, parts=(Text(text="time", origin=Origin.RUNTIME),))
    messages = [said("the task"), note, *(reply("b" * 800) for _ in range(20))]

    assert cut(messages, weigh(messages), ROOM).head == 2
    assert is_runtime(note)
    assert not is_runtime(messages[0])


def test_a_long_first_message_is_summarised_with_the_rest():
    messages = [said("t" * 800), *(reply("b" * 800) for _ in range(20))]

    assert cut(messages, weigh(messages), ROOM).head == 0


def test_a_window_that_the_prefix_fills_still_has_some_room():
    assert Room.within(1000, 5000, CompactionSettings()).limit > 0
