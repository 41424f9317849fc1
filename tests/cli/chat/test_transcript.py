from dataclasses import replace

from hypothesis import given, strategies as st

from hermes_agent.agent.loop import STILL_CUT
from hermes_agent.cli.chat.begin import as_written
from hermes_agent.cli.chat.text import plain
from hermes_agent.cli.chat.transcript import Transcript, Words
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import (
    Answered,
    Asked,
    Event,
    MessageTaken,
    Notice,
    Outcome,
    Replied,
    RunEnded,
    RunStarted,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from hermes_agent.core.messages import (
    Continuing,
    Message,
    Origin,
    Retrying,
    Role,
    StopReason,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolResult,
    Usage,
    said,
)
from hermes_agent.testing.clock import FakeClock


class Paper:
    """A page to read."""

    width = 60

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, lines: str) -> None:
        self.lines += plain(lines).split("\n")


def shown(*events: Event) -> tuple[Transcript, list[str]]:
    """What is on the page after these events."""
    paper = Paper()
    transcript = Transcript(paper, FakeClock(), as_written)
    for event in events:
        transcript.see(event)
    return transcript, paper.lines


def delta(text: str) -> TextDelta:
    return TextDelta(text=text)


def replied(text: str, *, partial: bool = False) -> Replied:
    return Replied(
        turn=1,
        call_id="c",
        message=Message(role=Role.ASSISTANT, parts=(Text(text=text),)),
        stop=StopReason.END,
        usage=Usage(),
        provider="p",
        model="m",
        cost=None,
        seconds=1.0,
        partial=partial,
    )


def ended(outcome: Outcome, text: str) -> RunEnded:
    return RunEnded(outcome=outcome, text=text, turns=1)


def tool_ended(text: str = "done") -> ToolEnded:
    message = Message(role=Role.TOOL, parts=(ToolResult(call_id="1", name="look", parts=(Text(text=text),)),))
    return ToolEnded(turn=1, call_id="1", tool="look", message=message, is_error=False, seconds=0.5)


TURN = TurnStarted(turn=1, call_id="c", messages=1)
TOOL = ToolStarted(turn=1, call_id="1", tool="look", effect=Effect.READS, summary="look: here")


def test_a_block_is_on_the_page_when_it_is_complete_and_the_rest_with_the_reply():
    transcript, lines = shown(TURN, delta("one\n\ntw"))
    assert lines == ["one"]
    assert transcript.words.tail == "tw"

    _, lines = shown(TURN, delta("one\n\ntw"), delta("o"), replied("one\n\ntwo"))
    assert lines == ["one", "", "two"]


def test_blocks_stand_as_in_the_text_and_code_stands_apart():
    _, lines = shown(TURN, delta("Look:\n- a\n\nand\n```\nx\n```\nend"), replied("Look:\n- a\n\nand\n```\nx\n```\nend"))
    assert lines == ["Look:", "- a", "", "and", "", "```", "x", "```", "", "end"]


def test_a_reply_whose_pieces_were_missed_is_shown_whole():
    _, lines = shown(TURN, delta("one\n\n"), delta("three\n\n"), replied("one\n\ntwo\n\nthree"))
    assert lines[-6:] == ["", "one", "", "two", "", "three"]
    assert any("had not arrived" in line for line in lines)


def test_what_a_failed_attempt_had_written_is_void():
    retrying = Retrying(reason="server failed", attempt=1, delay=2.0)
    transcript, lines = shown(TURN, delta("one\n\nhal"), retrying)
    assert transcript.words.tail == ""
    assert "Ignore the text above" in "\n".join(lines)
    assert "↻ server failed · attempt 2 in 2.0 s" in lines

    _, lines = shown(TURN, delta("hal"), retrying, delta("all"), replied("all"))
    assert lines == ["↻ server failed · attempt 2 in 2.0 s", "", "all"]


def test_words_that_are_gone_on_with_stay_and_no_line_comes_between():
    again = Continuing(reason="connection lost", attempt=1, delay=2.0)
    transcript, lines = shown(TURN, delta("One half "), again)
    assert (lines, transcript.retrying) == ([], "connection lost · attempt 2 in 2.0 s")

    _, lines = shown(TURN, delta("One half "), again, delta("and the other."), replied("One half and the other."))
    assert lines == ["One half and the other."]


def test_thoughts_are_short_and_whole_when_wanted():
    thinking = ThinkingDelta(text="First this.\nThen that.")
    _, lines = shown(TURN, thinking, delta("ok"), replied("ok"))
    assert lines == ["∴ thought · First this. Then that.", "", "ok"]

    transcript, _ = shown(TURN, thinking)
    transcript.show_thoughts = True
    paper = transcript._page
    transcript.see(delta("ok"))
    assert paper.lines == ["∴ First this.", "Then that."]


def test_calls_are_open_until_they_end():
    transcript, lines = shown(TURN, TOOL)
    assert [call.summary for call in transcript.calls.values()] == ["look: here"]
    assert lines == []

    transcript, lines = shown(TURN, TOOL, tool_ended())
    assert transcript.calls == {}
    assert lines == ["✓ look: here 0.5 s · done"]


def test_what_was_said_is_shown_when_it_is_read():
    transcript, lines = shown()
    transcript.wait(7, "hello\nthere")
    assert lines == []
    assert transcript.waiting == {7: "hello\nthere"}

    transcript.see(MessageTaken(message=said("hello\nthere"), inbox=7))

    assert transcript.waiting == {}
    assert transcript._page.lines == ["> hello", "  there"]


def test_a_message_that_was_read_already_waits_no_more():
    transcript, _ = shown(MessageTaken(message=said("quick"), inbox=7))
    transcript.wait(7, "quick")
    assert transcript.waiting == {}


def test_what_the_runtime_says_to_the_model_is_not_shown():
    _, lines = shown(MessageTaken(message=said("Go on.", Origin.RUNTIME)))
    assert lines == []


def test_a_run_that_answered_says_nothing_twice():
    _, lines = shown(RunStarted(), TURN, delta("hi"), replied("hi"), ended(Outcome.ANSWERED, "hi"))
    assert lines == ["hi"]


def test_an_answer_that_was_not_seen_is_shown_at_the_end():
    _, lines = shown(RunStarted(), ended(Outcome.ANSWERED, "hi"))
    assert lines == ["hi"]


def test_a_limit_says_what_the_reply_did_not():
    _, lines = shown(RunStarted(), replied("So far."), ended(Outcome.LIMIT, "So far.\n\nStopped: the turn limit."))
    assert lines == ["So far.", "", "■ Stopped: the turn limit. `/continue` resumes the run."]


def test_a_failure_and_a_notice_are_visible():
    transcript, lines = shown(RunStarted(), Notice(text="Careful.", level="warning"), ended(Outcome.FAILED, "No key."))
    assert lines == ["! Careful.", "✗ No key."]
    assert not transcript.running


def test_a_reply_that_was_cut_short_says_so():
    _, lines = shown(TURN, delta("half"), replied("half", partial=True), ended(Outcome.STOPPED, "Stopped."))
    assert lines == ["half", "", "(cut short)", "■ Stopped. `/continue` resumes the run."]


def test_questions_are_open_until_they_are_answered():
    asked = Asked(question="q", text="May I?", choices=("once", "deny"), purpose="approval")
    transcript, _ = shown(RunStarted(), asked)
    assert list(transcript.questions) == ["q"]

    transcript.see(Answered(question="q", answer="once", principal="cli:me"))

    assert transcript.questions == {}
    assert transcript._page.lines == ["? May I? → once"]


def test_words_from_outside_cannot_steer_the_terminal():
    _, lines = shown(Notice(text="a\x1b[2Jb"), MessageTaken(message=said("x\x1b]0;t\x07y"), inbox=1))
    assert lines == ["ab", "", "> xy"]


def test_a_long_message_is_cut_visibly():
    _, lines = shown(MessageTaken(message=said("line\n" * 40), inbox=1))
    assert len(lines) == 13
    assert lines[-1] == "  … 28 more lines"


def test_leaving_forgets_what_is_open():
    transcript, _ = shown(RunStarted(), TURN, TOOL, delta("half"))
    transcript.leave()
    assert (transcript.calls, transcript.words.tail, transcript.running) == ({}, "", False)


def test_a_reply_in_pieces_that_stays_cut_is_shown_once():
    events = (RunStarted(), replied("One, "), replied("two."), ended(Outcome.LIMIT, f"One, two.\n\n{STILL_CUT}"))
    _, lines = shown(*events)
    assert lines[:4] == ["One, ", "", "two.", ""]
    assert " ".join(line.strip() for line in lines[4:]) == f"■ {STILL_CUT}"


@given(st.lists(st.sampled_from(["one\n", "\n", "- a\n", "```\n", "x", "\n\n"]), max_size=20), st.integers(0, 20))
def test_everything_is_given_once(pieces: list[str], seen: int):
    words, whole = Words(), "".join(pieces)

    given_out = [block for piece in pieces[:seen] for block in words.add(piece)]
    rest, fits = words.finish(whole)

    assert fits
    assert "".join(given_out + rest) == whole


def test_a_reply_that_does_not_go_on_where_the_pieces_stopped_is_given_whole():
    words = Words()
    words.add("one\n\n")

    assert words.finish("uno\n\ndos") == (["uno\n\n", "dos"], False)


def test_a_reply_begins_anew_after_the_last_one_is_finished_or_forgotten():
    words = Words()
    words.add("one\n\ntw")
    assert words.given
    assert words.tail == "tw"

    words.forget()

    assert not words.given
    assert words.tail == ""
    assert words.finish("other") == (["other"], True)


def test_folded_output_is_shown_whole_the_latest_first():
    long = tool_ended("\n".join(f"l{n}" for n in range(700)))
    transcript, lines = shown(TURN, TOOL, long, TURN, TOOL, tool_ended("a\nb"))
    before = len(lines)

    transcript.unfold()
    assert lines[before:] == ["", "▾ look: here", "  a", "  b"]
    transcript.unfold()
    assert lines[-1] == "  l699"
    transcript.unfold()
    assert lines[-1] == "There is nothing more to unfold."


async def test_a_stopped_call_keeps_its_time_and_the_last_line_that_it_showed():
    paper, clock = Paper(), FakeClock()
    transcript = Transcript(paper, clock, as_written)
    transcript.see(TOOL)
    transcript.see(ToolProgress(call_id="1", tool="look", text="tick 5"))
    await clock.advance(5)

    transcript.see(replace(tool_ended("Interrupted."), is_error=True, seconds=0.0))

    assert paper.lines == ["✗ look: here 5.0 s", "  Interrupted.", "  tick 5"]
