"""Each command about work answers."""

import pytest

from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.commands.command import command_of
from tests.app.place import counting, place

WORK = ("agents", "cron", "goal", "subgoal", "kanban")


@pytest.mark.parametrize("name", WORK)
async def test_each_of_them_answers(tmp_path, name: str):
    async with place(tmp_path, counting) as here:
        assert name in COMMANDS and command_of(name).while_running
        line = f"/{name} list" if name != "subgoal" else "/goal list"

        assert await here.text(line)
