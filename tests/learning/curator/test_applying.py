"""Doing what was planned: only while things are as they were, nothing twice, and back where a query lost its answer."""

import shutil
from pathlib import Path

import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import HermesError
from hermes_agent.learning.curator.applying import GIVEN_UP, Applying, put_back
from hermes_agent.learning.curator.history import QueryHistory
from hermes_agent.learning.curator.plan import Plan, Step, keep
from hermes_agent.learning.curator.report import markdown
from hermes_agent.skills.depot import hash_of_folder
from hermes_agent.skills.library import NoSkill
from hermes_agent.store.learning.jobs import Account, Claim, JobState
from hermes_agent.store.versions import Author, By
from tests.learning.curator.harness import Kept, kept_home
from tests.skills.shelf import skill_text

BY = By(author=Author.BACKGROUND)


async def claimed(kept: Kept) -> Claim:
    number = await kept.curating._queue(["states"])
    claim = await kept.here.runtime.store.learning.claim()
    assert claim is not None
    assert claim.job.id == number
    return claim


async def applying(kept: Kept, steps: list[Step], past: tuple[QueryHistory, ...] = ()) -> Applying:
    """A plan for the home as it stands."""
    claim, writer = await claimed(kept), kept.curating.writer
    plan = Plan(job=claim.job.id, at=SystemClock().now(), looks=False, steps=tuple(steps), past=past)
    return Applying(
        store=kept.here.runtime.store,
        writer=writer,
        usage=kept.here.runtime.skills.usage,
        proposing=kept.here.runtime.learner.work.proposing,
        claim=claim,
        plan=plan,
        asks=False,
    )


def found(kept: Kept, place: str) -> str:
    return hash_of_folder(kept.here.runtime.skills.home / place)


async def test_what_was_changed_since_the_plan_stays_as_it_is(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        for name in ("a-skill", "b-skill", "c-skill"):
            await kept.make(name)
        old = {name: found(kept, name) for name in ("a-skill", "b-skill", "c-skill")}
        steps = [
            Step(number=1, kind="unused", name="a-skill", base=old["a-skill"]),
            Step(number=2, kind="patch", name="b-skill", base=old["b-skill"], changes={"SKILL.md": b"x"}),
            Step(number=3, kind="join", name="c-skill", base=old["c-skill"], absorbs={"a-skill": old["a-skill"]}),
            Step(number=4, kind="unused", name="d-skill", base="h"),
        ]
        work = await applying(kept, steps)
        for name in ("a-skill", "b-skill"):
            await kept.writer().write_file(name, "references/new.md", b"new", BY)
        before = kept.tree()
        await work.all()
        assert [came.state for came in work.came] == ["skipped", "skipped", "done", "skipped"]
        assert work.came[2].reason == "`a-skill` stays: `a-skill` was changed meanwhile."
        assert kept.tree() == before


async def test_what_was_used_since_the_plan_is_not_put_aside(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("a-skill")
        work = await applying(kept, [Step(number=1, kind="unused", name="a-skill", base=found(kept, "a-skill"))])
        await kept.used("a-skill", 0)
        await work.all()
        assert [came.reason for came in work.came] == ["`a-skill` was used meanwhile."]
        assert found(kept, "a-skill")


async def test_a_pass_that_is_begun_again_does_nothing_twice(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("a-skill")
        await kept.make("b-skill", category="office")
        text = skill_text("c-skill").encode()
        absorbs = {"a-skill": found(kept, "a-skill"), "b-skill": found(kept, "office/b-skill")}
        made = {"SKILL.md": text, "scripts/run.sh": b"#!/bin/sh\n"}
        work = await applying(
            kept, [Step(number=1, kind="join", name="c-skill", changes=made, runs=("scripts/run.sh",), absorbs=absorbs)]
        )
        await work.all()
        after, versions = kept.tree(), await kept.here.runtime.store.versions.list()
        work.came.clear()
        await work.all()
        assert (kept.tree(), await kept.here.runtime.store.versions.list()) == (after, versions)
        assert [came.state for came in work.came] == ["done"]
        assert after["c-skill/scripts/run.sh"] == b"x#!/bin/sh\n"


async def test_what_cost_a_past_query_its_answer_is_put_back_and_stays_so(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("brew-oolong", description="Brews oolong in a gaiwan. Use it for oolong.", category="tea")
        await kept.make("make-coffee")
        await kept.make("dry-hay")
        before = kept.tree()
        steps = [
            Step(number=1, kind="unused", name="dry-hay", base=found(kept, "dry-hay")),
            Step(
                number=2,
                kind="join",
                name="make-coffee",
                base=found(kept, "make-coffee"),
                changes={"references/more.md": b"more"},
                absorbs={"brew-oolong": found(kept, "tea/brew-oolong")},
            ),
        ]
        past = (QueryHistory(query="oolong in the gaiwan", skill="brew-oolong", shown=5),)
        work = await applying(kept, steps, past)
        await work.all()
        assert [each for each in await work.check() if each] == []
        assert [came.state for came in work.came] == ["done", "back"]
        left = {name: each for name, each in before.items() if not name.startswith("dry-hay")}
        assert kept.tree() == left

        work.came.clear()
        await work.all()
        assert [came.state for came in work.came] == ["done", "back"]
        assert await work.check() == []


async def test_what_nobody_can_answer_is_told(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("make-coffee")
        work = await applying(kept, [], (QueryHistory(query="never said words", skill="make-tea", shown=5),))
        await work.all()
        assert len(await work.check()) == 1


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


async def test_a_rollback_leaves_alone_what_was_changed_since(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("make-tea", days=-100)
        await kept.make("make-coffee", days=-100)
        await kept.make("make-milk", days=-100)
        await kept.curating.run()
        await kept.curating.run()
        await kept.curating.restore("make-tea")
        await kept.curating.restore("make-milk")
        await kept.writer().write_file("make-tea", "references/a.md", b"mine", BY)
        assert await kept.curating.rollback() == [
            "`make-coffee` is as it was.",
            "`make-milk` is as it was.",
            "`make-tea` was changed since: it stays (`hermes skills history make-tea`).",
        ]


async def test_what_changed_nothing_cannot_be_taken_back(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        run = await kept.curating.run()

        with pytest.raises(HermesError, match="changed nothing"):
            await kept.curating.rollback(run.id)
        with pytest.raises(HermesError, match="There is no pass left to undo"):
            await kept.curating.rollback()


async def test_what_a_rollback_makes_anew_is_the_agents_as_before(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("make-tea", days=-100)
        await kept.curating.run()
        await kept.curating.run()
        shutil.rmtree(kept.here.runtime.skills.home / ".archive")
        assert await kept.curating.rollback() == ["`make-tea` is as it was."]
        (row,) = (await kept.curating.status()).skills

    assert row.why_not == ""


async def test_a_skill_comes_back_from_the_ledger_where_the_archive_has_another(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        writer, home, ours = kept.writer(), kept.here.runtime.skills.home, By(author=Author.CURATOR, key="job.1.aside")
        await kept.make("a-skill", category="office")
        await writer.write_file("a-skill", "scripts/run.sh", b"#!/bin/sh\n", BY)
        (home / "office/a-skill/scripts/run.sh").chmod(0o700)
        before = kept.tree()
        await writer.archive("a-skill", ours)
        (home / ".archive/a-skill/SKILL.md").write_text("other")

        assert await put_back(writer, "job", "a-skill", BY) == "`a-skill` is as it was."
        assert kept.tree() == before


async def test_what_was_changed_amid_a_pass_is_not_taken_back_with_it(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        writer = kept.writer()
        await kept.make("a-skill")
        await writer.write_file("a-skill", "references/a.md", b"ours", By(author=Author.CURATOR, key="job.1.text"))
        await writer.write_file("a-skill", "references/b.md", b"mine", By(author=Author.OWNER))
        await writer.write_file("a-skill", "references/a.md", b"more", By(author=Author.CURATOR, key="job.2.text"))
        before = kept.tree()

        assert "it stays" in await put_back(writer, "job", "a-skill", BY)
        assert kept.tree() == before


async def test_a_script_that_a_pass_patched_may_still_be_run_when_that_is_taken_back(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        writer = kept.writer()
        await kept.make("a-skill")
        await writer.write_file("a-skill", "scripts/run", b"echo", BY)
        (kept.here.runtime.skills.home / "a-skill/scripts/run").chmod(0o700)
        before = kept.tree()
        await writer.write_file("a-skill", "scripts/run", b"echo 1", By(author=Author.CURATOR, key="job.1.text"))

        assert await put_back(writer, "job", "a-skill", BY) == "`a-skill` is as it was."
        assert kept.tree() == before
