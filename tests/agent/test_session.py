"""The view that is folded from the log."""

from hermes_agent.agent.session import Session, fold
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import (
    Answered,
    Asked,
    Durable,
    Entry,
    MessageTaken,
    Notice,
    PrefixFrozen,
    Replied,
    RunEnded,
    RunStarted,
    ToolEnded,
    ToolStarted,
    Undone,
)
from hermes_agent.core.messages import Message, Role, StopReason, Text, ToolCall, ToolResult, Usage, said


def replied(text: str, *calls: str, turn: int = 1) -> Replied:
    parts = (Text(text=text), *(ToolCall(id=call, name="t", arguments={}) for call in calls))
    return Replied(
        turn=turn,
        call_id="m",
        message=Message(role=Role.ASSISTANT, parts=parts),
        stop=StopReason.END,
        usage=Usage(),
        provider="p",
        model="m",
        cost=None,
        seconds=0.0,
    )


def result(call: str) -> ToolEnded:
    message = Message(role=Role.TOOL, parts=(ToolResult(call_id=call, name="t", parts=(Text(text=call),)),))
    return ToolEnded(turn=1, call_id=call, tool="t", message=message, is_error=False, seconds=0.0)


def view(*events: Durable) -> Session:
    entries = [Entry(number=index, run="r", at=0.0, event=event) for index, event in enumerate(events, 1)]
    return fold(Session(id="s"), entries)


def words(session: Session) -> list[str]:
    return [
        message.text or next(part.call_id for part in message.parts if isinstance(part, ToolResult))
        for message in session.messages
    ]


def test_results_stand_in_the_order_asked_whatever_the_order_they_came_in() -> None:
    session = view(
        MessageTaken(message=said("go")), replied("look", "a", "b", "c"), result("c"), result("a"), result("b")
    )

    assert words(session) == ["go", "look", "a", "b", "c"]
    assert session.open_calls == ()
    assert session.awaits_reply


def test_calls_without_a_result_are_open() -> None:
    session = view(MessageTaken(message=said("go")), replied("look", "a", "b"), result("b"))

    assert [call.id for call in session.open_calls] == ["a"]
    assert words(session) == ["go", "look"]
    assert session.awaits_reply


def test_an_intent_without_a_result_is_remembered_with_its_effect() -> None:
    started = ToolStarted(turn=1, call_id="a", tool="t", effect=Effect.WRITES, summary="")

    assert view(replied("", "a"), started).started == {"a": Effect.WRITES}
    assert view(replied("", "a"), started, result("a")).started == {}


def test_a_message_after_open_calls_keeps_the_results_that_there_are() -> None:
    session = view(replied("look", "a", "b"), result("b"), MessageTaken(message=said("stop that")))

    assert words(session) == ["look", "b", "stop that"]
    assert session.open_calls == ()


def test_after_a_reply_nobody_waits() -> None:
    assert not view(MessageTaken(message=said("hi")), replied("hello")).awaits_reply
    assert not view().awaits_reply


def test_a_run_is_open_until_its_end() -> None:
    assert view(RunStarted()).running
    assert not view(RunStarted(), RunEnded(outcome="answered", text="x", turns=1)).running


def test_the_turn_counts_from_the_run() -> None:
    assert view(RunStarted(), replied("a", turn=4)).turn == 4
    assert view(replied("a", turn=4), RunStarted()).turn == 0


def test_undo_shows_the_view_as_it_was() -> None:
    session = view(
        MessageTaken(message=said("one")),
        replied("1"),
        MessageTaken(message=said("two")),
        replied("2", "a"),
        result("a"),
        Undone(to=2),
    )

    assert words(session) == ["one", "1"]
    assert session.number == 6


def test_undo_of_everything_leaves_nothing() -> None:
    session = view(MessageTaken(message=said("one")), replied("1"), Undone(to=0), MessageTaken(message=said("again")))

    assert words(session) == ["again"]


def test_undo_makes_a_list_of_its_own() -> None:
    session = view(MessageTaken(message=said("one")), replied("1"))
    shown = session.messages

    session.apply(Entry(number=3, run="r", at=0.0, event=Undone(to=0)))

    assert len(shown) == 2
    assert session.messages == []


def test_questions_and_answers_are_remembered() -> None:
    session = view(
        Asked(question="q", text="Sure?", choices=(), purpose="approval"),
        Answered(question="q", answer="yes", principal="p"),
    )

    assert session.asked == {"q"}
    assert session.answers == {"q": "yes"}


def test_what_is_no_part_of_the_view_only_counts() -> None:
    session = view(Notice(text="x"), PrefixFrozen(hash="h", cause="c", sections=()))

    assert (session.messages, session.number, session.prefix_hash) == ([], 2, "h")


def test_a_part_beside_a_result_closes_no_call() -> None:
    note = Message(role=Role.TOOL, parts=(Text(text="by the way"), *result("a").message.parts))
    session = view(replied("", "a"), ToolEnded(turn=1, call_id="a", tool="t", message=note, is_error=False, seconds=0))

    assert session.open_calls == ()
    assert session.messages[-1] is note
