"""What a transcript holds."""

from __future__ import annotations

import json

from hermes_agent.cli.transcript import as_html, as_jsonl, said_in
from hermes_agent.core.events import Durable, Entry, MessageTaken, Notice, Outcome, Replied, RunEnded, Undone
from hermes_agent.core.messages import File, Image, Message, Role, StopReason, Text, Usage, said
from hermes_agent.store.sessions import Session

SESSION = Session(id="s", principal="p", conversation="c", surface="cli", created=0.0, updated=0.0, title="<b>")


def log(*events: Durable) -> list[Entry]:
    return [Entry(number=number, run="r", at=0.0, event=event) for number, event in enumerate(events, 1)]


def test_what_was_taken_back_is_left_out() -> None:
    entries = log(MessageTaken(message=said("one")), MessageTaken(message=said("two")), Undone(to=1))

    assert [each.text for each in said_in(entries)] == ["one"]


def test_a_run_without_an_answer_says_why() -> None:
    entries = log(Notice(text="slow"), RunEnded(outcome=Outcome.LIMIT, text="Stopped: the turn limit.", turns=3))

    assert [(each.who, each.text) for each in said_in(entries)] == [
        ("notice", "slow"),
        ("limit", "Stopped: the turn limit."),
    ]


def test_pictures_and_files_are_named() -> None:
    parts = (Image(), File(name="a.pdf", media_type="application/pdf"))

    (each,) = said_in(log(MessageTaken(message=Message(role=Role.USER, parts=parts))))

    assert each.text == "[picture]\n\n[a.pdf]"


def test_a_page_shows_a_hostile_title_as_text() -> None:
    assert "<b>" not in as_html(SESSION, log(MessageTaken(message=said("x"))))


def test_a_page_formats_what_the_agent_wrote_and_nothing_else() -> None:
    text = "# Head\n\n| a | b |\n|---|---|\n| 1 | <script>2</script> |\n\n[x](javascript:alert(1))"
    page = as_html(
        SESSION,
        log(
            MessageTaken(message=said("# no head")),
            Replied(
                turn=1,
                call_id="c",
                message=Message(role=Role.ASSISTANT, parts=(Text(text=text),)),
                stop=StopReason.END,
                usage=Usage(),
                provider="p",
                model="m",
                cost=None,
                seconds=0.0,
            ),
        ),
    )

    assert "<pre># no head</pre>" in page
    assert "<h1>Head</h1>" in page
    assert "<td>1</td>" in page
    assert "<script" not in page
    assert 'href="javascript' not in page


def test_each_line_of_a_log_is_one_object() -> None:
    lines = as_jsonl(SESSION, log(MessageTaken(message=said("a\nb")))).splitlines()

    assert [next(iter(json.loads(line))) for line in lines] == ["id", "number"]
