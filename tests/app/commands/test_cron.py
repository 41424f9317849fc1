"""/cron in a chat."""

from pathlib import Path

from tests.app.place import place


async def test_words_in_quotes_are_one_and_a_job_is_made(tmp_path: Path):
    async with place(tmp_path, []) as here:
        assert "Once, at" in await here.text('/cron create "in 20m" "Tea, \'black\'"')
        (job,) = await here.runtime.store.cron_jobs.all()
        assert (job.plan.prompt, job.remaining) == ("Tea, 'black'", 1)
