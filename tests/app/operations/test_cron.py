"""Operations on scheduled jobs, as typed in a chat."""

from pathlib import Path

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.cron import create_job, edit_job, import_file, list_runs, show_job, status
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.providers.demo.script import Say
from tests.app.place import Place, place

CHANNEL = """
gateway:
  channels:
    ntfy:
      enabled: true
      owners: [ann]
      members: [bob]
      home: news
      options: {server: "http://127.0.0.1:9", topics: news}
"""
BOB = Principal(platform="ntfy", user="bob", standing=Standing.MEMBER)
EVE = Principal(platform="ntfy", user="eve", standing=Standing.GUEST)


def access(here: Place, who: Principal | None = None) -> Access:
    where = None if who is None else Conversation(platform="ntfy", chat="news")
    return Access(system=here.runtime, who=who or here.runtime.owner, where=where)


async def test_a_job_is_made_shown_paused_resumed_and_removed_by_lines(tmp_path: Path):
    async with place(tmp_path, [Say("Hi.")]) as here:
        made = await here.text('/cron create "0 9 * * 1-5" "Sum up my mail"')
        assert "Sum up my mail" in made
        assert "At 09:00 on Monday through Friday" in made
        assert made.count("09:00") >= 4
        assert "Delivers to: local" in made
        assert "Nobody is running it: start `hermes gateway run` or `hermes worker`." in made
        assert "At 09:00" in await here.text("/cron")
        (job,) = await here.runtime.store.cron_jobs.all()
        assert "paused" in await here.text(f"/cron pause {job.id}")
        assert "Next:" in await here.text(f"/cron resume {job.id}")
        assert "It has not run yet." in await here.text(f"/cron runs {job.id}")
        assert "1 of 1 jobs are on" in await here.text("/cron status")
        assert "Sum up my mail is removed." in await here.text(f"/cron remove {job.id}")
        assert "There are no jobs." in await here.text("/cron list")
        with pytest.raises(HermesError, match="quotes"):
            await here.text('/cron create "0 9')
        with pytest.raises(HermesError, match="no job `nothing`"):
            await here.text("/cron show nothing")


async def test_a_name_that_is_taken_is_refused_with_what_differs_and_the_same_job_is_kept(tmp_path: Path):
    async with place(tmp_path, []) as here:
        first = await create_job(access(here), "every 2h", "Hello", name="greet")
        again = await create_job(access(here), "every 2h", "Hello", name="greet")
        assert again.id == first.id
        with pytest.raises(HermesError, match="prompt: Hello -> Bye"):
            await create_job(access(here), "every 2h", "Bye", name="greet")
        changed = await edit_job(access(here), "greet", prompt="Bye", schedule="@daily")
        assert (changed.prompt, changed.schedule) == ("Bye", "At 00:00 every day (UTC)")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"prompt": ""}, "no prompt"),
        ({"no_agent": True}, "needs a script"),
        ({"prompt": "x" * 20_001}, "longer than 20,000 characters"),
        ({"script": "../config.yaml"}, "is not in .*scripts"),
        ({"script": "link.sh"}, "is not in .*scripts"),
        ({"script": "none.sh"}, "There is no script"),
        ({"folder": "/nowhere/at/all"}, "is not a folder"),
        ({"toolsets": "shel"}, "Did you mean `shell`"),
        ({"deliver": "telegram:5"}, "`telegram:5` names no chat"),
        ({"deliver": "origin"}, "made in no chat"),
        ({"catch_up": "some"}, "say skip, last, all"),
        ({"overlap": "some"}, "say skip, queue, stop"),
        ({"zone": "Europe/Berln"}, "Did you mean `Europe/Berlin`"),
        ({"context_from": "nothing"}, "no job `nothing`"),
        ({"name": "x" * 61}, "1 to 60 characters"),
        ({"money": "much"}, "no amount"),
        ({"ends": "every 2h"}, "is no time"),
    ],
)
async def test_what_a_job_may_not_have_is_refused_when_it_is_made(tmp_path: Path, given: dict[str, object], why: str):
    async with place(tmp_path, [], more=CHANNEL) as here:
        scripts = here.runtime.home.root / "scripts"
        scripts.mkdir()
        (scripts / "link.sh").symlink_to("/etc/hostname")
        with pytest.raises(HermesError, match=why):
            await create_job(access(here), "@daily", **{"prompt": "Hi", **given})
        assert await here.runtime.store.cron_jobs.all() == []


async def test_a_member_has_their_own_jobs_in_their_chat_and_a_guest_none(tmp_path: Path):
    async with place(tmp_path, [], more=CHANNEL) as here:
        own = await create_job(access(here, BOB), "@daily", "Hi")
        await create_job(access(here), "@daily", "Mine", name="mine")
        assert own.deliver == ("origin",)
        assert [each.name for each in await here.runtime.store.cron_jobs.all(BOB.key)] == ["Hi"]
        assert (await show_job(access(here), "Hi")).principal == "ntfy:bob"
        with pytest.raises(HermesError, match="no job `mine`"):
            await show_job(access(here, BOB), "mine")
        for given in ({"folder": "/"}, {"script": "x.sh"}, {"gate": "x.sh"}):
            with pytest.raises(HermesError, match="Only the owner's jobs have a"):
                await create_job(access(here, BOB), "@daily", "Hi", name="two", **given)
        with pytest.raises(HermesError, match="delivered elsewhere"):
            await create_job(access(here, BOB), "@daily", "Hi", name="two", deliver="all")
        with pytest.raises(HermesError, match="Guests have no scheduled jobs"):
            await create_job(access(here, EVE), "@daily", "Hi")
        with pytest.raises(HermesError, match="Only the owner imports"):
            await import_file(access(here, BOB), "jobs.json")


async def test_a_person_has_so_many_jobs_and_no_more(tmp_path: Path):
    async with place(tmp_path, [], more="cron:\n  max_jobs: 2\n") as here:
        for name in ("a", "b"):
            await create_job(access(here), "@daily", "Hi", name=name)
        with pytest.raises(HermesError, match="There are 2 jobs already"):
            await create_job(access(here), "@daily", "Hi", name="c")


async def test_what_went_by_while_a_job_was_paused_is_a_row(tmp_path: Path):
    async with place(tmp_path, []) as here:
        job = await create_job(access(here), "every 1m", "Hi", name="often")
        await here.text("/cron pause often")
        store = here.runtime.store
        there = await store.cron_jobs.get(job.id)
        assert there is not None
        await store.write(
            lambda tx: tx.run(
                "UPDATE cron_job SET planned_to = planned_to - 600, body = replace(body, $1, $2)", *moved(there)
            )
        )
        await here.text("/cron resume often")
        runs = await list_runs(access(here), "often")
        assert [(each.state, each.why, each.counts) for each in runs] == [("skipped", "paused", 10)]


def moved(job) -> tuple[str, str]:
    anchor = job.plan.schedule.anchor
    return f'"anchor":{anchor}', f'"anchor":{anchor - 600}'


async def test_the_status_names_what_went_wrong(tmp_path: Path):
    async with place(tmp_path, []) as here:
        found = await status(access(here))
        assert (found.served, found.jobs) == (False, 0)
        await create_job(access(here), "@daily", "Hi", name="fine")
        found = await status(access(here))
        assert (found.on, found.wrong) == (1, ())


async def test_what_a_job_has_is_taken_away_by_the_word_none(tmp_path: Path):
    async with place(tmp_path, []) as here:
        made = await create_job(access(here), "@daily", "Hi", name="a", money="0.5", ends="2099-01-01", toolsets="web")
        plan = (await here.runtime.store.cron_jobs.get(made.id)).plan  # type: ignore[union-attr]  # it is there
        assert (plan.money, plan.ends, plan.toolsets) == (500_000_000, 4_070_908_800.0, ("web",))
        await edit_job(access(here), "a", money="none", ends="none", toolsets="none")
        plan = (await here.runtime.store.cron_jobs.get(made.id)).plan  # type: ignore[union-attr]  # it is there
        assert (plan.money, plan.ends, plan.toolsets) == (None, None, None)
