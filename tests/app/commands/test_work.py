"""Each command about work answers."""

from pathlib import Path

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


async def test_words_in_quotes_are_one_and_a_job_is_made(tmp_path: Path):
    async with place(tmp_path, []) as here:
        assert "Once, at" in await here.text('/cron create "in 20m" "Tea, \'black\'"')
        (job,) = await here.runtime.store.cron_jobs.all()
        assert (job.plan.prompt, job.remaining) == ("Tea, 'black'", 1)
