from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from wcwidth import wcswidth

from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.opening import open_system
from hermes_agent.app.system import System
from hermes_agent.cli.chat.chat_session import HERE, ChatSession, Status, more_help, names, usage
from hermes_agent.cli.options import Invocation
from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import HermesError, UnknownSession
from hermes_agent.core.events import Delegated, Outcome, Pinned, Replied, RunEnded, Unpinned
from hermes_agent.core.messages import Message, Role, StopReason, Usage
from hermes_agent.host.paths import find_home


def test_every_command_is_offered_once_with_a_summary():
    offered = [each.name for each in names()]

    assert offered == [*COMMANDS, "quit", "keys", "output", "copy", "export", "doctor", "thinking"]
    assert all(each.summary for each in names())


def test_help_tells_what_only_a_terminal_has():
    assert [line.split()[0] for line in more_help().split("\n")] == [f"/{each.name}" for each in HERE]


def test_the_usage_of_a_typed_command_is_shown_also_under_another_name():
    assert usage("/model x") == "/model [vendor/model]"
    assert usage("/compact ") == "/compact [what matters]"
    assert usage("/export") == "/export [FILE]"
    assert [usage(line) for line in ("", "/", "hello", "/quit", "/nothing")] == [""] * 5


def status() -> Status:
    return Status(model="vendor/model", window=1000, session="20260101_120000_abcdef")


def reply(cost: float | None = 0.01, usage: Usage | None = None) -> Replied:
    return Replied(
        turn=1,
        call_id="c",
        message=Message(role=Role.ASSISTANT, parts=()),
        stop=StopReason.END,
        usage=usage or Usage(input=200, output=50),
        provider="vendor",
        model="model",
        cost=cost,
        seconds=1.0,
    )


def test_context_is_what_the_last_request_filled_and_costs_add_up():
    line = status()
    line.see(reply())
    line.see(reply(usage=Usage(input=450, output=50)))

    assert line.context == "context 50 %"
    assert line.price == "$0.0200"


def test_unknown_is_said_and_not_taken_for_nothing():
    line = status()
    assert (line.context, line.price) == ("", "")

    line.see(reply(cost=None, usage=Usage(known=False)))
    assert (line.context, line.price) == ("context unknown", "cost unknown")

    line.see(reply())
    assert (line.context, line.price) == ("context 25 %", "$0.0100 + unknown")


def test_the_least_important_leaves_first():
    line = status()
    line.see(reply())
    line.title, line.notice = "日本語の題", True

    assert line.line("idle", 120) == "idle · ! config.yaml · vendor/model · context 25 % · $0.0100 · 日本語の題"
    assert line.line("idle", 60) == "idle · ! config.yaml · vendor/model · context 25 % · $0.0100"
    assert line.line("idle", 40) == "idle · ! config.yaml · vendor/model"
    for columns in range(1, 80):
        assert wcswidth(line.line("idle", columns)) <= columns


def test_what_holds_and_is_easily_forgotten_stands_before_the_model():
    line = status()
    line.walled = False
    line.more = lambda: ["yolo", "2 queued"]
    line.see(Pinned(pin="a", text="be brief"))
    line.see(Delegated(call_id="c", session="s", goal="g"))
    assert line.line("idle", 120).startswith("idle · ! no wall · 1 pin · 1 agent · yolo · 2 queued · vendor/model")

    line.see(Pinned(pin="b", text="read only", denies=(Capability.EXEC,)))
    line.see(RunEnded(outcome=Outcome.ANSWERED, text="", turns=1))
    assert line.line("idle", 120).startswith("idle · ! no wall · read only · yolo · 2 queued · vendor/model")
    line.see(Unpinned(pin="b"))
    assert "1 pin ·" in line.line("idle", 120)


@pytest.fixture
async def runtime(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[System]:
    (home / "config.yaml").write_text("model:\n  default: custom/m\n  base_url: http://127.0.0.1:9/v1\n")
    monkeypatch.chdir(project)
    async with open_system(find_home().ensure()) as runtime:
        yield runtime


async def opened(runtime: System, **options: str | bool) -> ChatSession:
    chat_session = ChatSession(runtime, Invocation(**options))
    await chat_session.open()
    return chat_session


async def test_a_chat_has_no_session_before_the_first_line(runtime: System, project: Path):
    chat_session = await opened(runtime)
    assert chat_session.session == ""
    assert chat_session.folder == str(project)
    assert await chat_session.entries() == ()
    assert not await chat_session.resume()

    await chat_session.ensure()

    assert chat_session.session
    assert [record.id for record in await runtime.store.sessions.list()] == [chat_session.session]


async def test_continue_is_this_folders_latest_session(runtime: System, tmp_path: Path, monkeypatch):
    first = await opened(runtime)
    await first.ensure()

    assert (await opened(runtime, go_on=True)).session == first.session
    monkeypatch.chdir(tmp_path)
    assert (await opened(runtime, go_on=True)).session == ""


async def test_resume_finds_by_title_and_makes_it_the_latest(runtime: System):
    first, second = await opened(runtime), await opened(runtime)
    for chat_session in (first, second):
        await chat_session.ensure()
    await runtime.store.sessions.rename(first.session, "Green tea")

    assert (await opened(runtime, resume="green tea")).session == first.session
    assert (await opened(runtime, go_on=True)).session == first.session


async def test_an_unknown_session_is_an_error(runtime: System):
    with pytest.raises(UnknownSession):
        await opened(runtime, resume="nowhere")


async def test_another_model_on_the_command_line_is_the_sessions_from_then_on(runtime: System):
    first = await opened(runtime)
    await first.ensure()

    again = await opened(runtime, go_on=True, model="custom/other")

    assert again.status().model == "custom/other"
    assert (await opened(runtime, go_on=True)).status().model == "custom/other"


async def test_a_command_may_switch_the_session(runtime: System):
    chat_session = await opened(runtime)
    await chat_session.ensure()
    before = chat_session.session

    done = await chat_session.command("/new Tea", busy=False)

    assert done is not None
    assert chat_session.session != before
    assert chat_session.record is not None
    assert chat_session.record.title == "Tea"


async def test_words_are_no_command_and_a_busy_session_refuses_some(runtime: System):
    chat_session = await opened(runtime)
    assert await chat_session.command("hello /new", busy=False) is None
    with pytest.raises(HermesError, match="does not work during a run"):
        await chat_session.command("/new", busy=True)
