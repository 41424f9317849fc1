"""`hermes -c -z ""`: what ended without an answer is taken up again without words."""

import pytest

from hermes_agent.cli.exits import Exit
from hermes_agent.cli.oneshot import run
from hermes_agent.cli.options import Invocation
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.faults import Status
from hermes_agent.testing.model_servers import KEY, openai_model, serving_in_thread
from hermes_agent.testing.scripted import tries


@pytest.fixture
def model(home, tmp_path, monkeypatch):
    """Gives the home a model with this script; returns the server."""
    opened = []

    def configure(script, more: str = ""):
        context = serving_in_thread(openai_model(script))
        opened.append(context)
        server = context.__enter__()
        (home / "config.yaml").write_text(f"model:\n  default: custom/m\n  base_url: {server.url}\n{more}")
        return server

    monkeypatch.setenv("CUSTOM_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    yield configure
    for context in opened:
        context.__exit__(None, None, None)


def test_without_continue_a_new_session_begins(model):
    server = model(lambda heard: Say("One."))
    run(Invocation(question="First"))
    run(Invocation(question="Second"))

    assert len(server.asked[1].messages) == 1


def test_a_run_that_failed_is_taken_up_again_without_words(model, capsys):
    server = model([tries(Status(400, "no"), Say("Here."))])

    assert run(Invocation(question="Go")) == Exit.PROVIDER
    assert run(Invocation(question="", go_on=True)) == Exit.OK
    assert capsys.readouterr().out == "Here.\n"
    assert len(server.asked[1].messages) == 1


def test_a_limit_has_its_own_code_and_can_be_continued(model, capsys):
    model([Call("todo", {}), Say("Half."), Say("Whole.")], "agent:\n  max_turns: 1\n")

    assert run(Invocation(question="Go")) == Exit.LIMIT
    half = capsys.readouterr()
    assert half.out == "Half.\n"
    assert half.err.startswith("Stopped: the turn limit (1, `agent.max_turns`) was reached.\n")
    assert '`hermes -c -z ""` resumes it.' in half.err
    assert run(Invocation(question="", go_on=True)) == Exit.OK
    assert capsys.readouterr().out == "Whole.\n"


def test_a_broken_configuration_is_said_once_and_the_last_good_one_used(model, home, capsys):
    model([Say("One."), Say("Two.")])
    run(Invocation(question="First"))
    with (home / "config.yaml").open("a") as file:
        file.write("modle: 3\n")

    assert run(Invocation(question="Second", go_on=True)) == Exit.OK
    out, err = capsys.readouterr()
    assert out == "One.\nTwo.\n"
    assert err.count("modle") == 1
