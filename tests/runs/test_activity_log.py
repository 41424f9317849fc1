"""The log of what runs do: a line for each call, request, question and end; nobody's words."""

import json
import logging
import re

from hermes_agent import Agent, Tool
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import (
    Answered,
    Asked,
    Notice,
    Outcome,
    RunEnded,
    RunStarted,
    Seen,
    ToolEnded,
    ToolStarted,
)
from hermes_agent.core.messages import Message, Role, Text, ToolResult
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.runs.activity_log import ActivityLog
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.app.place import settle_home


def ended(text: str, *, is_error: bool = False) -> ToolEnded:
    message = Message(role=Role.TOOL, parts=(ToolResult(call_id="c", name="look", parts=(Text(text=text),)),))
    return ToolEnded(turn=1, call_id="c", tool="look", message=message, is_error=is_error, seconds=0.25)


def said(caplog, *events) -> list[str]:
    log = ActivityLog()
    logging.getLogger("hermes_agent").propagate = True
    with caplog.at_level(logging.INFO):
        for event in events:
            log(Seen(session="s1", number=1, run="r1", at=0.0, event=event))
    assert all((record.session, record.run) == ("s1", "r1") for record in caplog.records)
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records]


def test_a_call_is_a_line_with_its_summary_and_without_its_answer(caplog):
    started = ToolStarted(turn=1, call_id="c", tool="look", effect=Effect.READS, summary="look: there")

    assert said(caplog, started, ended("the secret answer"), ended("{}", is_error=True)) == [
        "INFO tool look: there: ok, 0.2 s",
        "WARNING tool look: failed, 0.2 s",
    ]


def test_a_refusal_is_an_error_and_says_so(caplog):
    refusal = json.dumps({"error": "no", "kind": "refused"})

    assert said(caplog, ended(refusal, is_error=True), ended("[1]", is_error=True)) == [
        "ERROR tool look: refused, 0.2 s",
        "WARNING tool look: failed, 0.2 s",
    ]


def test_approvals_are_told_with_their_answer_and_facts_without(caplog):
    assert said(
        caplog,
        Asked(question="q1", text="May I run this?\n rm -rf x", choices=("once",), purpose="approval"),
        Answered(question="q1", answer="once", principal="cli:me"),
        Asked(question="q2", text="What is your name?", choices=(), purpose="clarify"),
        Answered(question="q2", answer="Bob", principal="cli:me"),
    ) == [
        "INFO approval asked: May I run this? rm -rf x",
        "INFO answered by cli:me: once",
        "INFO the person is asked for a fact",
        "INFO answered by cli:me: a fact",
    ]


def test_how_a_run_began_and_ended_is_told(caplog):
    assert said(
        caplog,
        RunStarted(),
        RunStarted(resumed=True),
        Notice(text="Fell back.", level="warning"),
        Notice(text="Learned: x", level="news"),
        RunEnded(outcome=Outcome.LIMIT, text="words", turns=3, reason="turn limit"),
    ) == [
        "INFO run started",
        "INFO run resumes after an interruption",
        "WARNING notice: Fell back.",
        "INFO run ended: limit, 3 turns, turn limit",
    ]


def test_a_run_leaves_its_lines_in_the_home_and_nothing_of_what_is_noted(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    note = "My favourite colour is heliotrope."
    script = [Call("memory", {"target": "user", "action": "add", "content": note}), Call("fetch"), Say("Noted.")]
    with serving_in_thread(openai_model(script, keys=())) as server:
        settle_home(home, server.url)
        agent = Agent(toolsets=["memory"], capabilities=["memory"])
        agent.register_tool(Tool(name="fetch", function=lambda: "", capabilities=["network"]))
        agent.run("Note my colour.")

    text = (home / "logs/hermes.log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert note in (home / "memories/USER.md").read_text()
    assert "heliotrope" not in text
    assert {line["session"] for line in lines} == {agent.state.session}
    assert len({line["run"] for line in lines}) == 1
    told = [f"{line['part']} {re.sub(r'[0-9.$]+', 'N', line['text'])}" for line in lines]
    model = "models custom/m for chat: ok, N s, N tokens in (N cached), N out"
    assert told == [
        "runs run started",
        model,
        "runs tool memory: user: ok, N s",
        model,
        "runs tool fetch: refused, N s",
        model,
        "runs run ended: answered, N turns",
    ]
