from pathlib import Path

from hermes_agent.cli.chat.chat import in_view, place_line, replay, retell, short_path
from hermes_agent.cli.chat.chat_session import Status
from hermes_agent.core.events import Answered, Asked, Durable, Entry, MessageTaken, Outcome, RunStarted, Undone
from hermes_agent.core.messages import Origin, said
from tests.cli.chat.conftest import Open
from tests.cli.chat.test_transcript import ended, replied, shown, tool_ended

IDLE = " idle ·"


def test_a_folder_is_written_as_people_do(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert short_path(str(tmp_path)) == "~"
    assert short_path(f"{tmp_path}/project") == "~/project"
    assert short_path(f"{tmp_path}-other") == f"{tmp_path}-other"


def test_the_second_line_fits_a_narrow_terminal():
    assert place_line("~/p", "new session", 80) == "~/p · new session · /help, /keys"
    assert place_line("~/p", "new session", 30) == "~/p · new session"
    assert place_line("/a/very/long/folder/of/mine", "new session", 30) == "…/folder/of/mine · new session"


def test_another_session_is_shown_when_it_is_switched_to(at_terminal: Open):
    terminal = at_terminal(rows=40)
    terminal.wait_for("new session")
    terminal.send("hello\r")
    terminal.wait_for("You said: 'hello'", IDLE)
    terminal.send("/title First\r")
    terminal.wait_for("Titled")
    terminal.send("/new\r")
    terminal.wait_for("New session 20")
    terminal.send("second\r")
    terminal.wait_for("You said: 'second'", IDLE)

    terminal.send("/resume First\r")
    text = terminal.wait_for("(First).", "· First")

    assert text.count("You said: 'hello'") == 2
    assert text.count("You said: 'second'") == 1


def test_the_keys_are_explained(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("/keys\r")

    terminal.wait_for("Alt+Enter, Ctrl-J", "stop the run")


def test_a_queued_message_waits_for_the_end_of_the_run(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("hang on\r")
    terminal.wait_for("slow slow")

    terminal.send("/queue later\r")
    terminal.wait_for("> later (queued)")
    terminal.send("/stop\r")

    terminal.wait_for("Stopped", "You said: 'later'")


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
