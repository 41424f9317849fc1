"""The library, as a program uses it."""

import asyncio
import re
from pathlib import Path

import pytest

from hermes_agent import Agent, Tool
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.core.events import Outcome, Replied, RunEnded, ToolEnded
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.faults import Status
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.app.place import settle_home

PAGE = "<h1>Example Domain</h1>"


@pytest.fixture
def script():
    return [Call("fetch_url", {"url": "https://example.com"}), Say("It is an example.")]


@pytest.fixture
def server(home, script, tmp_path, monkeypatch):
    """A model on loopback that HERMES_HOME is configured for; the work is done in a folder of its own."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    with serving_in_thread(openai_model(script, keys=())) as server:
        settle_home(home, server.url)
        yield server


def test_the_words_of_the_manual_work_as_written(server):
    fetched = []

    def fetch_url(url: str) -> str:
        fetched.append(url)
        return PAGE

    agent = Agent(name="research_agent")
    agent.register_tool(
        Tool(name="fetch_url", function=fetch_url, description="Fetch a page", capabilities=["network"])
    )
    result = agent.run("Fetch https://example.com")
    last = agent.state.tool_history[-1]  # tool, input, output, duration, error

    assert result == "It is an example."
    assert (result.outcome, result.turns) == (Outcome.ANSWERED, 2)
    assert fetched == ["https://example.com"]
    assert (last["tool"], last["input"], last["output"]) == ("fetch_url", {"url": "https://example.com"}, PAGE)
    assert (last["duration"] >= 0, last["error"]) == (True, None)


def test_without_a_model_the_scripted_one_calls_the_tool_and_warns_of_it(home):
    def fetch_url(url: str) -> str:
        return PAGE

    agent = Agent(name="research_agent")
    agent.register_tool(
        Tool(name="fetch_url", function=fetch_url, description="Fetch a page", capabilities=["network"])
    )
    with pytest.warns(UserWarning, match="no key was found .* Until then the scripted demo model answers."):
        result = agent.run("Fetch the content from https://example.com")

    assert agent.state.tool_history[-1]["input"] == {"url": "https://example.com"}
    assert agent.state.tool_history[-1]["output"] == PAGE
    assert PAGE in result


def test_a_model_that_was_chosen_and_has_no_key_is_never_replaced_by_the_scripted_one(home):
    with pytest.raises(HermesError, match="needs a key"):
        Agent(model="openai/gpt-5").run("Fetch https://example.com")

    (home / "config.yaml").write_text("model: {default: openai/gpt-5}\n")
    with pytest.raises(HermesError, match="needs a key"):
        Agent().run("Fetch https://example.com")


async def test_awaited_it_gives_the_same(server):
    async def fetch_url(url: str) -> str:
        await asyncio.sleep(0)
        return PAGE

    agent = Agent()
    agent.register_tool(Tool(name="fetch_url", function=fetch_url))

    assert await agent.arun("Fetch it") == "It is an example."
    assert agent.state.tool_history[0]["output"] == PAGE


async def test_streamed_it_shows_every_step(server):
    agent = Agent()
    agent.register_tool(Tool(name="fetch_url", function=lambda url: PAGE, description="Fetch a page"))
    events = [event async for event in agent.stream("Fetch it")]

    assert isinstance(events[-1], RunEnded)
    assert {"text_delta", "turn_started"} <= {event.kind for event in events}
    assert [type(event) for event in events if isinstance(event, Replied | ToolEnded)] == [Replied, ToolEnded, Replied]


def test_a_tool_whose_capability_was_not_granted_is_refused_and_logged(server, home):
    called = []
    agent = Agent(capabilities=["fs.read"])
    agent.register_tool(Tool(name="fetch_url", function=lambda url: called.append(url), capabilities=["network"]))
    agent.run("Fetch it")

    record = agent.state.tool_history[-1]
    assert called == []
    assert '"kind": "refused"' in record["error"]
    assert re.search(r"tool fetch_url: .*refused", (home / "logs/hermes.log").read_text())


def test_a_tool_that_fails_is_in_the_history_with_its_error(server):
    def fetch_url(url: str) -> str:
        raise ConnectionError("no route")

    agent = Agent()
    agent.register_tool(Tool(name="fetch_url", function=fetch_url))
    result = agent.run("Fetch it")

    assert result == "It is an example."
    assert re.search(r"ConnectionError:[^a-z]+kind[^a-z]+failed\W+no route", agent.state.tool_history[-1]["error"])


@pytest.mark.parametrize("script", [lambda heard: Say(f"{len(heard.messages)} messages.")])
def test_two_runs_continue_one_conversation_and_another_agent_begins_anew(server):
    agent = Agent(name="one")

    assert agent.run("Hi") == "1 messages."
    assert agent.run("And?") == "3 messages."
    assert Agent(name="one").run("Hi") == "1 messages."


async def test_run_in_a_running_loop_says_what_to_use(server):
    with pytest.raises(HermesError, match=r"await agent\.arun"):
        Agent().run("Hi")


@pytest.mark.parametrize("script", [[Status(401, "wrong key")]])
def test_a_run_that_fails_raises_the_reason(server):
    with pytest.raises(HermesError, match="wrong key") as failed:
        Agent().run("Hi")
    assert failed.value.__context__ is None  # A traceback shows this failure and no other.


def test_a_name_is_registered_once():
    agent = Agent()
    agent.register_tool(Tool(name="fetch_url", function=lambda url: PAGE))
    with pytest.raises(HermesError, match="registered already"):
        agent.register_tool(Tool(name="fetch_url", function=lambda url: PAGE))


def test_an_unknown_toolset_is_an_error_that_leaves_nothing_open(server):
    with pytest.raises(ConfigError, match="There is no toolset `flies`"):
        Agent(toolsets=["flies"]).run("Hi")


@pytest.mark.parametrize("script", [[Call("read_file", {"path": "a.txt"}), Say("Read.")]])
@pytest.mark.parametrize(("capabilities", "works"), [(None, True), (["fs.read"], True), (["network"], False)])
def test_a_toolset_that_is_named_may_do_what_it_needs_unless_it_is_narrowed(server, capabilities, works):
    Path("a.txt").write_text("hello")
    agent = Agent(toolsets=["files"], capabilities=capabilities)
    agent.run("Read it")

    record = agent.state.tool_history[-1]
    assert (record["error"] is None) is works
    assert ("hello" in record["output"]) is works


@pytest.mark.parametrize("script", [[Say("Hello.")]])
def test_the_home_may_be_named(server, home, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HERMES_HOME")
    settle_home(tmp_path / "other", server.url)

    assert Agent(home="~/other").run("Hi") == "Hello."
    assert (tmp_path / "other/hermes.db").exists()
    assert not (home / "hermes.db").exists()


@pytest.mark.parametrize("script", [lambda heard: Say("Hello.")])
async def test_who_leaves_a_stream_early_can_go_on(server):
    agent = Agent()
    async for _ in agent.stream("Hi"):
        break

    assert await agent.arun("Again") == "Hello."


@pytest.mark.parametrize("script", [[Say("Hello.")]])
def test_nothing_but_the_registered_tools_is_offered(server):
    agent = Agent()
    agent.register_tool(Tool(name="fetch_url", function=lambda url: PAGE))
    agent.run("Hi")

    assert {tool.name for tool in server.asked[0].tools} <= {"fetch_url", "find_tools", "use_tool"}


def test_a_function_that_cannot_be_described_is_refused_with_the_reason():
    def odd(*things):
        return things

    with pytest.raises(HermesError, match="`odd` cannot be a tool"):
        Agent().register_tool(Tool(name="odd", function=odd))


def test_a_tool_of_a_program_waits_for_the_one_that_it_depends_on(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = [[Call("fetch"), Call("sign_in")], Say("Both.")]
    said = []
    with serving_in_thread(openai_model(script, keys=())) as server:
        settle_home(home, server.url)
        agent = Agent()
        agent.register_tool(Tool(name="fetch", function=lambda: said.append("fetch"), depends_on=["sign_in"]))
        agent.register_tool(Tool(name="sign_in", function=lambda: said.append("sign_in")))
        agent.run("Fetch.")

    assert said == ["sign_in", "fetch"]
    assert [call["error"] for call in agent.state.tool_history] == [None, None]


def test_tools_that_depend_on_each_other_in_a_circle_are_refused():
    agent = Agent()
    agent.register_tool(Tool(name="a", function=lambda: "", depends_on=["b"]))
    agent.register_tool(Tool(name="b", function=lambda: "", depends_on=["c"]))

    with pytest.raises(HermesError, match="`c` cannot be a tool: c needs a needs b needs c"):
        agent.register_tool(Tool(name="c", function=lambda: "", depends_on=["a"]))
