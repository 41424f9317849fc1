"""What can be chosen after a command, from a whole system."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes_agent.app.opening import open_system
from hermes_agent.cli.chat.chat_session import ChatSession
from hermes_agent.cli.chat.picker import PICKERS, picks_for
from hermes_agent.cli.options import Invocation
from hermes_agent.host.paths import find_home
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.model_servers import openai_model, serving


@pytest.fixture
async def chat(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ChatSession]:
    """A chat whose server lists two models."""
    monkeypatch.chdir(project)
    async with serving(openai_model([Say("Hello.")], keys=(), models=("m", "own-coder"))) as model:
        (home / "config.yaml").write_text(f"model:\n  default: custom/m\n  base_url: {model.url}\n")
        async with open_system(find_home().ensure()) as runtime:
            yield ChatSession(runtime, Invocation())


async def test_the_server_s_own_models_come_first_and_the_current_one_is_marked(chat: ChatSession):
    first, second, *rest = await picks_for(chat, "model")

    assert (first.line, first.about) == ("/model custom/m", "current")
    assert (second.label, second.about) == ("custom/own-coder", "on your server")
    assert "demo/scripted" in [each.label for each in rest]
    assert any(each.about.startswith("no key") for each in rest)
    assert len({each.line for each in rest}) == len(rest)


async def test_every_picker_gives_lines_of_its_command_under_the_name_that_was_typed(chat: ChatSession):
    for name in PICKERS.keys() - {"skills"}:
        assert all(each.line.startswith(f"/{name} ") for each in await picks_for(chat, name)), name
    assert all(each.line.startswith("/effort ") for each in await picks_for(chat, "effort"))


async def test_other_sessions_are_offered_by_their_first_words(chat: ChatSession):
    await chat.ensure()
    await chat.submit(chat.inbound("A word about\nherons"))
    assert [seen async for seen in chat.runtime.hermes.follow(chat.session, 0)]
    assert await picks_for(chat, "resume") == []
    before, chat.record = chat.record, None

    (pick,) = await picks_for(chat, "resume")

    assert before is not None
    assert pick.line == f"/resume {before.id}"
    assert pick.label in (before.title, "A word about herons")
    assert pick.about.startswith("now · project")


async def test_a_skill_waits_for_its_words(chat: ChatSession):
    picks = await picks_for(chat, "skills")

    assert picks
    assert all(each.line == f"{each.label} " and not each.sends for each in picks)
