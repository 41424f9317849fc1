"""The commands about work are known before anything of work is loaded."""

import subprocess
import sys

import pytest

from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.commands.command import command_of
from tests.app.place import counting, place

WORK = ("agents", "cron", "goal", "subgoal", "kanban")


def test_the_menu_of_commands_loads_nothing_of_work():
    code = (
        "import sys\nfrom hermes_agent.cli.chat.chat_session import names; names()\n"
        "print([name for name in sys.modules if '.work.' in name and not name.endswith('.settings')"
        " and name.count('.') > 2])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert found.strip() == "[]"


@pytest.mark.parametrize("name", WORK)
async def test_each_of_them_answers(tmp_path, name: str):
    async with place(tmp_path, counting) as here:
        assert name in COMMANDS and command_of(name).while_running
        line = f"/{name} list" if name != "subgoal" else "/goal list"

        assert await here.text(line)
