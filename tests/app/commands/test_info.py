"""Where things stand."""

import pytest

from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.settings import Settings
from hermes_agent.core.errors import NoModel
from hermes_agent.core.events import Outcome
from hermes_agent.host.config import load
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import another, counting, place, settle_home


async def test_model_shows_and_chooses_for_this_session(tmp_path):
    async with place(tmp_path, counting) as here:
        assert await here.text("/model") == "Model: custom/m"
        assert await here.text("/model custom/other") == "This session now asks custom/other."
        await here.say("Hi")
        assert here.server.asked[-1].model == "other"
        await here.type("/new")
        assert here.record.model == "custom/other"


async def test_a_model_that_cannot_be_asked_is_refused_and_the_old_one_stays(tmp_path):
    async with place(tmp_path, counting) as here:
        with pytest.raises(NoModel, match="ANTHROPIC_API_KEY"):
            await here.type("/model anthropic/claude-opus-5-5")
        assert await here.text("/model") == "Model: custom/m"


async def test_another_vendors_model_is_not_asked_at_the_configured_address(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.type("/model demo/scripted")
        ended = await here.say("Hi")

        assert here.server.exchanges == []
        assert ended.outcome is Outcome.ANSWERED
        await here.type("/model custom/m")
        await here.say("Hi")
        assert len(here.server.asked) == 1


async def test_long_words_of_a_command_do_not_push_the_others_away(tmp_path):
    async with place(tmp_path, counting) as here:
        lines = (await here.text("/help")).split("\n")

        assert next(line for line in lines if line.startswith("/help")).index("Show the commands.") == 30
        assert next(lines[n + 1] for n, line in enumerate(lines) if line.startswith("/approvals ")).startswith(" " * 30)


async def test_tools_lists_every_tool(tmp_path):
    async with place(tmp_path, counting) as here:
        text = await here.text("/tools")

        assert {line.split()[0] for line in text.splitlines()} >= {"read_file", "terminal", "todo", "clarify"}


async def test_status_says_where_the_session_stands(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.type("/title Mine")
        await here.say("Hi")
        text = await here.text("/status", busy=True)

        assert f"Session  {here.record.id} (Mine)" in text
        assert "Model    custom/m" in text
        assert f"Folder   {tmp_path / 'work'}" in text
        assert "Run      under way" in text


async def test_status_shows_a_broken_config(tmp_path):
    home = settle_home(tmp_path / "home", "")
    home.config_file.write_text("agent:\n  max_turns: 3\n")
    load(home.ensure(), Settings)
    home.config_file.write_text("agnet:\n  max_turns: 3\n")
    async with serving(openai_model(counting, keys=())) as server, another(home, server) as here:
        text = await here.text("/status")

        assert "agnet" in text
        assert "Model    none: `hermes setup` chooses one" in text
        assert "together" in await here.text("/context")


async def test_help_shows_all_or_one(tmp_path):
    async with place(tmp_path, counting) as here:
        text = await here.text("/help")

        told = [line.split()[0] for line in text.splitlines() if line.startswith("/")]
        assert told == [f"/{name}" for name in COMMANDS]
        assert (await here.text("/help /undo")).startswith("/undo [how many]")
        assert await here.text("/help what") == text
