"""Reports of passes that nobody brought to their end."""

from pathlib import Path

import pytest

from hermes_agent.learning.curator.plan import Step, keep
from hermes_agent.learning.curator.report import markdown
from hermes_agent.learning.curator.reporting import GIVEN_UP
from hermes_agent.skills.changes import By
from hermes_agent.skills.library import NoSkill
from hermes_agent.store.learning.jobs import Account, JobState
from hermes_agent.store.versions import Author
from tests.learning.curator.harness import kept_home
from tests.learning.curator.test_applying import applying, found

BY = By(author=Author.BACKGROUND)


async def test_a_pass_that_was_given_up_half_way_is_told_and_can_be_taken_back(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        for name in ("a-skill", "b-skill", "c-skill", "d-skill"):
            await kept.make(name)
        before = kept.tree()
        names = ("a-skill", "b-skill", "c-skill")
        steps = [
            Step(number=number, kind="unused", name=name, base=found(kept, name))
            for number, name in enumerate(names, 1)
        ]
        work = await applying(kept, steps)
        folder = kept.curating.places.folder(work.claim.job)
        keep(work.plan, folder)
        await work._one(steps[0])
        await work._one(steps[1])
        await kept.curating.restore("b-skill")
        await kept.curating.run(look=True)
        assert len(await kept.curating.runs()) == 1  # The job is under way still.

        await kept.here.runtime.store.learning.end(work.claim, JobState.FAILED, Account())
        await kept.curating.run(look=True)
        run = await kept.curating.one(folder.name)
        assert [(each.name, each.state) for each in run.changes] == [
            ("a-skill", "done"),
            ("b-skill", "done"),
            ("c-skill", "skipped"),
        ]
        assert (run.touched, run.failed) == (["a-skill", "b-skill"], GIVEN_UP)
        assert f"not done. {GIVEN_UP}" in markdown(run)
        assert await kept.curating.rollback(run.id) == ["`a-skill` is as it was.", "`b-skill` is as it was."]
        assert kept.tree() == before


async def test_a_file_that_somebody_left_among_the_reports_keeps_no_pass_from_its_end(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("a-skill")
        kept.curating.places.logs.mkdir(parents=True)
        (kept.curating.places.logs / ".DS_Store").write_bytes(b"x")

        assert (await kept.curating.run(look=True)).looks


async def test_a_path_is_no_name_of_what_was_put_aside(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("a-skill")
        await kept.make("b-skill")
        await kept.curating.writer.archive("b-skill", BY)
        before = kept.tree()

        with pytest.raises(NoSkill):
            await kept.curating.restore("../a-skill")

        assert kept.tree() == before
