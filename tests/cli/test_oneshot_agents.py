"""A one-shot question whose agents work on in the background."""

import json

import pytest

from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.app.place import spoken
from tests.children import said_by, started


def script(heard: Heard) -> Piece:
    """A parent that starts two agents in the background, and says how many reports it has."""
    if "You work for another agent" in heard.system:
        return Say("Found it.")
    if not any(message.role == "assistant" for message in heard.messages):
        return Call("delegate_task", {"tasks": [{"goal": "a"}, {"goal": "b"}], "background": True})
    reports = sum(message.text.count("Found it.") for message in heard.messages)
    return Say(f"{reports} reports.")


@pytest.mark.timeout(60)
def test_where_somebody_serves_the_home_its_agents_are_left_to_them(tmp_path):
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()

    def slowly(heard: Heard) -> Piece:
        if "You work for another agent" in heard.system and not spoken(heard):
            return Call("terminal", {"command": "while [ ! -e go ]; do sleep 0.1; done"})
        return script(heard)

    with serving_in_thread(openai_model(slowly, keys=())) as server:
        (home / "config.yaml").write_text(
            f"model:\n  default: custom/m\n  base_url: {server.url}\nterminal:\n  jail: none\n"
        )
        worker = started("worker", home=home, folder=work)
        try:
            assert worker.stdout is not None
            worker.stdout.readline()
            said = said_by(started("-z", "Go", home=home, folder=work))
            (work / "go").touch()
            session = said.err.rpartition("hermes -r ")[2].partition("`")[0]
            shown = ""
            while "2 reports." not in shown:
                shown = said_by(started("sessions", "show", session, home=home, folder=work)).out
            agents = json.loads(said_by(started("agents", "list", "--json", home=home, folder=work)).out)
        finally:
            worker.terminate()
            worker.communicate()

    assert said.code == 0, said.err
    assert said.out.splitlines() == ["0 reports."]
    assert said.err.splitlines()[-1].startswith("2 agents left to the server of this home.")
    assert [each["outcome"] for each in agents] == ["answered", "answered"]


@pytest.mark.timeout(60)
def test_it_waits_for_the_reports_of_agents_in_the_background(tmp_path):
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    with serving_in_thread(openai_model(script, keys=())) as server:
        (home / "config.yaml").write_text(f"model:\n  default: custom/m\n  base_url: {server.url}\n")
        said = said_by(started("-z", "Go", home=home, folder=work))
        listed = said_by(started("agents", "list", "--json", home=home, folder=work))
        agents = json.loads(listed.out)
        shown = said_by(started("agents", "show", agents[0]["session"], home=home, folder=work))

    assert said.code == 0, said.err
    assert said.out.splitlines()[-1] == "2 reports."
    assert [each["outcome"] for each in agents] == ["answered", "answered"]
    assert "Found it." in shown.out
