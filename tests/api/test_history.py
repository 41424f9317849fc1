"""What was said before, as a client tells it and as the log has it; and a run folded from its events."""

import pytest

from hermes_agent.api import requests
from hermes_agent.api.history import events_of, mark_of, tells
from hermes_agent.api.problems import body_of, failed, type_of
from hermes_agent.api.requests import Said
from hermes_agent.api.run_view import Ref, RunView, asked_for, ref_of
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.events import Answered, Asked, Entry, MessageTaken, Outcome, Replied, RunEnded, Undone
from hermes_agent.core.messages import Message, Origin, Role, StopReason, Text, Usage, said

ANNA = Principal(platform="api", user="anna", standing=Standing.MEMBER)
RUN = "abcdef012345"


def entries(*events, run: str = RUN) -> list[Entry]:
    return [Entry(number=number, run=run, at=0.0, event=event) for number, event in enumerate(events, 1)]


def taken(text: str, inbox: int = 1) -> MessageTaken:
    return MessageTaken(message=said(text), inbox=inbox, principal="api:anna")


USAGE = Usage(input=5, output=2)


def reply(text: str, usage: Usage = USAGE) -> Replied:
    message = Message(role=Role.ASSISTANT, parts=(Text(text=text),))
    return Replied(
        turn=1,
        call_id="",
        message=message,
        stop=StopReason.END,
        usage=usage,
        provider="v",
        model="m",
        cost=None,
        seconds=0,
    )


def ended(text: str, outcome: Outcome = Outcome.ANSWERED) -> RunEnded:
    return RunEnded(outcome=outcome, text=text, turns=1)


def history(*texts: str) -> list[Said]:
    return [Said(role=("user", "assistant")[index % 2], content=text) for index, text in enumerate(texts)]


LOG = (taken("Hi"), reply("I look."), reply("Hello."), ended("Hello."))


@pytest.mark.parametrize(
    ("log", "told", "same"),
    [
        (LOG, ("Hi", "Hello."), True),
        (LOG, ("Hi", "I look.\n\nHello."), True),
        (LOG, (" Hi\n", "Hello. "), True),
        (LOG, ("Hi", "I look."), False),
        (LOG, ("Hi",), False),
        (LOG, ("Hi", "Hello.", "More"), False),
        ((*LOG, Undone(to=1)), ("Hi", "Hello."), False),
        ((MessageTaken(message=said("note")), *LOG), ("Hi", "Hello."), True),
    ],
)
def test_a_log_holds_what_is_told_or_not(log, told, same):
    assert tells(entries(*log), history(*told), ANNA) is same


def test_what_is_told_becomes_a_log_that_holds_it():
    told = [*history("Hi", "Hello."), Said(role="user")]
    events = events_of(told, ANNA)

    assert tells(entries(*events, run=""), told, ANNA)
    assert events[0].message.parts[0].origin is Origin.MEMBER


def test_conversations_are_marked_by_how_they_begin():
    assert mark_of("a", "b") == mark_of("a", "b")
    assert len({mark_of("a", "b"), mark_of("", "ab"), mark_of("ab", ""), mark_of("\ud800", "b")}) == 4


def test_the_words_of_a_message_are_its_texts():
    parts = [
        requests.TextPart(text="a"),
        requests.ImagePart(image_url=requests.ImageUrl(url="https://x/y")),
        requests.InputText(text="b"),
    ]
    assert requests.text_of(parts) == "ab"
    assert requests.text_of(None) == ""
    assert requests.parts_of(parts, ANNA)[1].url == "https://x/y"


def test_a_run_is_folded_from_its_own_events():
    story = RunView(ref=Ref(session="20260101_000000_abcdef", row=2))
    other = entries(taken("Before", 1), ended("Before."), run="000000000000")
    own = entries(
        taken("Hi", 2),
        reply("I look."),
        Asked(question="q", text="May I?", choices=("once", "deny"), purpose="approval"),
    )
    assert [story.take(each) for each in (*other, *own)] == [False, False, True, True, True]
    assert (story.status, story.rests, story.is_over) == ("waiting", True, False)
    assert asked_for(story).startswith("May I? (once, deny)\n\n")
    rest = entries(Answered(question="q", answer="once", principal="api:anna"), reply("Done."), ended("Done."))
    assert all(story.take(each) for each in rest)
    assert (story.status, story.text, story.question) == ("answered", "Done.", None)
    assert (story.usage.input, story.usage.output, story.model) == (10, 4, "v/m")
    assert not story.take(entries(taken("Later", 3))[0])
    assert story.facts().id == "run_20260101_000000_abcdef_2"


def test_an_id_leads_back_to_its_run():
    ref = Ref(session="20260101_000000_abcdef", row=12)
    assert {ref_of(ref.id(kind)) for kind in ("run", "resp", "chatcmpl")} == {ref}
    for name in ("run_20260101_000000_abcdef_0", "run_x_1", "", "run_20260101_000000_abcdef_" + "9" * 30):
        assert ref_of(name) is None


@pytest.mark.parametrize(
    ("error", "status"), [("NoModel", 503), ("RateLimited", 429), ("ContextTooLong", 400), ("AuthRefused", 502)]
)
def test_a_failed_run_has_the_status_of_its_error(error, status):
    problem = failed(error, "It failed.")
    assert (problem.status, body_of(problem).error.message) == (status, "It failed.")
    assert problem.headers["x-should-retry"] == "false"


def test_the_types_of_errors_are_openai_s():
    assert [type_of(status) for status in (400, 401, 404, 429, 500, 503)] == [
        "invalid_request_error",
        "authentication_error",
        "not_found_error",
        "rate_limit_error",
        "server_error",
        "server_error",
    ]
