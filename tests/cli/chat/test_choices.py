"""What can be chosen after a command, from a whole system."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes_agent.app.opening import open_system
from hermes_agent.cli.chat.attaching import FileIndex
from hermes_agent.cli.chat.chat_session import ChatSession
from hermes_agent.cli.chat.choices import choices_of
from hermes_agent.cli.chat.picker import PICKERS, wanted_in
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.picker_choices import Choice
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


async def offered(chat: ChatSession, line: str) -> list[Choice]:
    """What can be chosen after this line."""
    wanted = wanted_in(line)
    assert wanted is not None
    return await choices_of(chat, FileIndex(lambda: chat.folder), wanted)


async def test_the_server_s_own_models_come_first_and_the_current_one_is_marked(chat: ChatSession):
    first, second, *rest = await offered(chat, "/model ")

    assert (first.line, first.about) == ("/model custom/m", "current")
    assert (second.name, second.about) == ("custom/own-coder", "on your server")
    assert "demo/scripted" in [each.name for each in rest]
    assert any(each.about.startswith("no key") for each in rest)
    assert len({each.line for each in rest}) == len(rest)


async def test_every_picker_gives_lines_of_its_command_under_the_name_that_was_typed(chat: ChatSession):
    for name in PICKERS.keys() - {"skills", "mcp show", "mcp test", "mcp login"}:
        assert all(each.line.startswith(f"/{name} ") for each in await offered(chat, f"/{name} ")), name
    assert all(each.line.startswith("/settings ") for each in await offered(chat, "/settings "))


async def test_other_sessions_are_offered_by_their_first_words(chat: ChatSession):
    await chat.ensure()
    await chat.submit(chat.inbound("A word about\nherons"))
    assert [seen async for seen in chat.runtime.hermes.follow(chat.session, 0)]
    assert await offered(chat, "/resume ") == []
    before, chat.record = chat.record, None

    (pick,) = await offered(chat, "/resume ")

    assert before is not None
    assert pick.line == f"/resume {before.id}"
    assert pick.name in (before.title, "A word about herons")
    assert pick.about.startswith("now · project")


async def test_a_skill_waits_for_its_words(chat: ChatSession):
    picks = await offered(chat, "/skills ")

    assert picks
    assert all(each.line == f"{each.name} " and not each.sends for each in picks)


async def test_what_was_learned_and_goals_are_offered_to_the_verbs_that_take_them(chat: ChatSession):
    record = await chat.ensure()
    await chat.command("/pin Be brief", busy=False)
    await chat.command("/goal Mend the roof --file roof.txt", busy=True)

    (goal,) = await offered(chat, "/goal pause ")
    (pin,) = await offered(chat, "/unpin ")

    assert record.id == chat.session
    assert (goal.line, goal.about, goal.sends) == (f"/goal pause {goal.name}", "Mend the roof", False)
    assert (await offered(chat, "/goal show "))[0].sends
    assert (pin.line, pin.about) == (f"/unpin {pin.name}", "Be brief")


async def test_files_are_found_by_folder_and_anywhere(chat: ChatSession, project: Path):
    (project / "src" / "main").mkdir(parents=True)
    (project / "src" / "app main.py").touch()
    (project / ".venv").mkdir()
    (project / ".venv" / "notes.md").touch()

    def lines(found: list[Choice]) -> list[str]:
        return [each.line for each in found]

    assert lines(await offered(chat, "see @")) == ["@a.txt ", "@src/", '@"src/app main.py" ']
    assert lines(await offered(chat, "@src/")) == ['@"src/app main.py" ', "@src/main/", "@a.txt "]
    assert lines(await offered(chat, "@.v"))[0] == "@.venv/"
    assert lines(await offered(chat, f"@{project}/src/no")) == [
        f'@"{project}/src/app main.py" ',
        f"@{project}/src/main/",
    ]
    assert lines(await offered(chat, "@/nowhere/x")) == []
