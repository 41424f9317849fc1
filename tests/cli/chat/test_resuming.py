from hermes_agent.cli.chat.chat_session import Status
from hermes_agent.cli.chat.resuming import in_view, replay, retell
from hermes_agent.core.events import Answered, Asked, Durable, Entry, MessageTaken, Outcome, RunStarted, Undone
from hermes_agent.core.messages import Origin, said
from tests.cli.chat.test_transcript import TOOL, ended, replied, shown, tool_ended

ASKED = Asked(question="q", text="May I?", choices=("once", "deny"), purpose="approval")


def log(*events: Durable) -> list[Entry]:
    return [Entry(number=number, run="r", at=0.0, event=event) for number, event in enumerate(events, 1)]


def took(text: str) -> MessageTaken:
    return MessageTaken(message=said(text), inbox=1)


def told(*events: Durable) -> list[str]:
    transcript, lines = shown()
    retell(log(*events), transcript)
    return lines


def test_the_last_exchanges_are_told_with_calls_counted():
    lines = told(took("one"), replied("1"), took("two"), tool_ended(), tool_ended(), replied("2"), took("three"))
    assert lines == ["… 1 earlier messages", "", "> two", "", "· 2 tool calls", "", "2", "", "> three"]


def test_what_the_runtime_said_is_not_told():
    assert told(took("one"), MessageTaken(message=said("Go on.", Origin.RUNTIME)), replied("1")) == ["> one", "", "1"]


def test_what_was_taken_back_is_not_told():
    events = (took("one"), replied("1"), took("two"), replied("2"), Undone(to=2))
    assert told(*events) == ["> one", "", "1"]
    assert [entry.number for entry in in_view(log(*events))] == [1, 2]


def test_a_long_reply_is_told_by_its_end():
    lines = told(took("one"), replied("\n".join(map(str, range(100)))))
    assert "… 70 lines before" in lines
    assert lines[-1] == "99"


def test_nothing_said_is_nothing_told():
    assert told() == []


def taken_up(*events: Durable) -> tuple[bool, list[str], int, int]:
    transcript, _ = shown()
    status = Status(model="m", window=1000)
    last = replay(log(*events), transcript, status)
    return transcript.running, list(transcript.questions), last, status.calls


def test_an_open_run_and_its_question_are_open_again():
    assert taken_up(RunStarted(), took("one"), replied("1"), ASKED) == (True, ["q"], 4, 1)


def test_what_was_answered_or_ended_is_not():
    answered = Answered(question="q", answer="once", principal="cli:me")
    assert taken_up(RunStarted(), ASKED, answered) == (True, [], 3, 0)
    assert taken_up(RunStarted(), ASKED, ended(Outcome.STOPPED, "")) == (False, [], 3, 0)
    assert taken_up() == (False, [], 0, 0)


def test_a_call_that_was_under_way_is_shown_as_running_and_one_that_ended_is_not():
    transcript, _ = shown()
    replay(log(RunStarted(), took("one"), replied(""), TOOL), transcript, Status(model="m", window=1000))
    assert [call.summary for call in transcript.calls.values()] == [TOOL.summary]

    transcript, _ = shown()
    replay(log(RunStarted(), TOOL, tool_ended()), transcript, Status(model="m", window=1000))
    assert not transcript.calls
