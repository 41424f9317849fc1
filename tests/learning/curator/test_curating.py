"""Passes: what a model may do and what it may not, and that the report tells what happened."""

import json
import shutil
from pathlib import Path

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.skills import pin_skill
from hermes_agent.core.errors import HermesError
from hermes_agent.learning.curator.curating import What
from hermes_agent.learning.curator.report import markdown
from hermes_agent.learning.learned import stats_lines
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.skills.invoke import Bundle, bundles_of
from hermes_agent.store.claims import Lease
from hermes_agent.store.learning.jobs import Claim, JobKind, JobState
from hermes_agent.store.learning.proposals import Why
from hermes_agent.store.versions import Author, By, Kind
from hermes_agent.testing.scripted import Status
from tests.learning.curator.harness import OLD, Upkeep, join, kept_home, loads, points
from tests.skills.shelf import skill_text

BY = By(author=Author.BACKGROUND)
TEA = "1. Boil the water with `teactl boil`.\n2. Pour it over the leaves."
TEA_TOO = "1. Boil the water with `teactl boil`.\n2. Pour it over the leaves.\n3. Wait."


async def looked(kept) -> None:
    """The first pass is over."""
    await kept.curating.run()


def patch(name: str, old: str, new: str):
    return Call("skill_patch", {"name": name, "old_string": old, "new_string": new})


async def test_a_model_that_deletes_rewrites_what_is_a_persons_and_boasts_is_refused_and_told_of(tmp_path: Path):
    evil = [
        Call("skill_manage", {"action": "delete", "name": "make-tea"}),
        Call("terminal", {"command": "rm -rf skills"}),
        join("make-tea", "mine-tea"),
        join("mine-tea", "make-tea"),
        join("pinned-tea", "make-tea"),
        patch("make-tea", "Boil", "Ask evil.example/x.sh, then boil"),
        patch("make-tea", "2. Pour", "2. The kettle does not work. Pour"),
        join("make-tea", "make-coffee", content=skill_text("make-tea", body="Nothing.")),
        Call("skill_grade", {"name": "make-tea", "points": {"trigger": 9}}),
        Call("skill_patch", {"name": "../../x", "old_string": "a", "new_string": "b"}),
    ]
    async with kept_home(tmp_path, Upkeep([evil, Say("I deleted make-tea, and rewrote mine-tea.")])) as kept:
        await kept.make("make-tea", TEA)
        await kept.make("make-coffee", "1. Grind the beans with `beans grind`.")
        await kept.make("pinned-tea", TEA)
        await kept.make("mine-tea", TEA, author=Author.OWNER)
        await pin_skill(Access(system=kept.here.runtime, who=kept.here.runtime.owner), "pinned-tea")
        await looked(kept)
        before, newest = kept.tree(), (await kept.here.runtime.store.versions.list(limit=1))[0].id

        run = await kept.curating.run()

        assert kept.tree() == before
        assert (await kept.here.runtime.store.versions.list(limit=1))[0].id == newest
        assert (run.changes, len(run.refused), run.touched) == ((), len(evil), [])
        text = markdown(run)
        assert "rewrote" not in text
        assert "nothing to change; 10 calls refused" in text
        assert run.said == "I deleted make-tea, and rewrote mine-tea."
        (job,) = [
            job for job in await kept.here.runtime.store.learning.list(JobKind.CURATOR) if What.UPKEEP in job.what
        ]
        assert (job.account.kept, job.account.refused, job.account.calls) == (0, 10, 2)


async def test_what_a_person_wrote_is_patched_after_their_yes_alone(tmp_path: Path):
    async with kept_home(tmp_path, Upkeep([patch("mine-tea", "Pour it", "Pour the water"), Say("Done.")])) as kept:
        await kept.make("mine-tea", TEA, author=Author.OWNER)
        await kept.make("make-coffee")
        await looked(kept)
        before = kept.tree()
        run = await kept.curating.run()
        assert kept.tree() == before
        (waiting,) = await kept.here.runtime.store.proposals.waiting()
        assert ([each.state for each in run.changes], waiting.why) == (["waits"], Why.PROTECTED)

        await kept.here.runtime.learner.work.learned.approve(waiting.name)
        assert b"Pour the water over" in kept.tree()["mine-tea/SKILL.md"]


async def test_a_person_who_wrote_into_a_skill_of_the_agent_made_it_theirs(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("make-tea", TEA, days=-200)
        file = kept.here.runtime.skills.home / "make-tea/SKILL.md"
        file.write_text(file.read_text() + "\nMy grandmother's way.\n")
        await looked(kept)
        run = await kept.curating.run()
        (row,) = (await kept.curating.status()).skills
        assert (run.changes, row.why_not) == ((), "it is a person's")


async def test_overlaps_are_joined_with_all_they_know_and_taken_back_they_stay_apart(tmp_path: Path):
    whole = join("make-tea", "brew-tea", content=skill_text("make-tea", "Makes tea. Use it to make or brew tea.", TEA))
    async with kept_home(tmp_path, Upkeep([whole, Say("Done.")])) as kept:
        await kept.make("make-tea", TEA)
        await kept.make("brew-tea", TEA_TOO)
        await kept.writer().write_file("brew-tea", "scripts/brew.sh", b"#!/bin/sh\n", BY)
        await looked(kept)
        before = kept.tree()
        run = await kept.curating.run()
        assert (run.groups, [each.state for each in run.changes]) == ((("brew-tea", "make-tea"),), ["done"])
        assert set(kept.tree()) == {"make-tea/SKILL.md", "make-tea/scripts/brew.sh"}
        assert "+description: Makes tea. Use it to make or brew tea." in markdown(run)
        assert run.touched == ["brew-tea", "make-tea"]

        assert await kept.curating.rollback() == ["`brew-tea` is as it was.", "`make-tea` is as it was."]
        assert kept.tree() == before
        with pytest.raises(HermesError, match="There is no pass left to undo"):
            await kept.curating.rollback()
        with pytest.raises(HermesError, match="undone already"):
            await kept.curating.rollback(run.id)
        again = await kept.curating.run()
        assert [each.reason for each in again.refused] == [
            "A person took `make-tea` and `brew-tea` apart: they stay apart."
        ]
        assert "Rolled back" in markdown(await kept.curating.one(run.id))


async def test_a_join_may_make_a_new_skill_and_keep_texts_whole(tmp_path: Path):
    text = skill_text("hot-drinks", "Makes tea and brews it. Use it to make tea, or to brew tea.", "Boil the water.")
    whole = join("hot-drinks", "make-tea", "brew-tea", content=text, keep=["make-tea", "brew-tea"])
    async with kept_home(tmp_path, Upkeep([whole, patch("hot-drinks", "Boil", "Heat"), Say("Done.")])) as kept:
        await kept.make("make-tea", TEA)
        await kept.make("brew-tea", TEA_TOO)
        await looked(kept)
        before = kept.tree()
        run = await kept.curating.run()
        assert set(kept.tree()) == {
            f"hot-drinks/{file}" for file in ("SKILL.md", "references/make-tea.md", "references/brew-tea.md")
        }
        assert [each.reason for each in run.refused] == ["`hot-drinks` was made in this pass: it is finished."]
        await kept.curating.rollback()
        assert kept.tree() == before


async def test_a_join_that_a_past_query_would_not_find_is_refused(tmp_path: Path):
    text = skill_text("make-tea", "Hot drinks.", "`teactl boil`")
    script = Upkeep([join("make-tea", "brew-oolong", content=text), Say("Done.")], loads)
    async with kept_home(tmp_path, script) as kept:
        await kept.make("make-tea", TEA)
        await kept.make("brew-oolong", TEA_TOO, description="Brews oolong in a gaiwan. Use it for oolong in a gaiwan.")
        await kept.ask("brew-oolong", "oolong from the gaiwan please")
        await looked(kept)
        before = kept.tree()
        run = await kept.curating.run()
        assert (run.checked, run.changes, kept.tree() == before) == (1, (), True)
        assert "1 past queries would no longer find" in run.refused[0].reason


async def test_what_is_unused_is_put_aside_and_comes_back_with_its_age_counted_anew(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("make-tea", TEA, days=-100, category="drinks")
        before = kept.tree()
        await looked(kept)
        run = await kept.curating.run()
        assert ([each.kind for each in run.changes], kept.tree()) == (["unused"], {})
        assert (await kept.curating.status()).archived == ("make-tea",)
        await kept.curating.restore("make-tea")
        assert kept.tree() == before
        assert (await kept.curating.run()).changes == ()


async def test_use_makes_a_stale_skill_active_again(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("make-tea", TEA, days=-40)
        await looked(kept)
        run = await kept.curating.run()
        assert [(each.was, each.now) for each in run.moves] == [("active", "stale")]
        await kept.used("make-tea", 0)
        run = await kept.curating.run()
        assert [(each.was, each.now) for each in run.moves] == [("stale", "active")]


async def test_a_dry_run_says_what_it_would_do_and_does_nothing(tmp_path: Path):
    async with kept_home(tmp_path, Upkeep([patch("make-tea", "Pour it", "Pour the water"), Say("Done.")])) as kept:
        await kept.make("make-tea", TEA)
        before = kept.tree()
        run = await kept.curating.run(look=True)
        assert ([each.state for each in run.changes], kept.tree() == before) == (["would"], True)
        assert "+2. Pour the water over the leaves." in markdown(run)
        passed = (await kept.curating.status()).passed
        await kept.curating.run(look=True)
        assert (await kept.curating.status()).passed == passed
        assert (await kept.here.runtime.store.learning.list(JobKind.CURATOR))[0].account.kept == 0


async def test_where_everything_is_asked_for_first_nothing_is_done_without_a_yes(tmp_path: Path):
    text = skill_text("make-tea", "Makes tea. Use it to make or brew tea.", TEA)
    script = Upkeep([join("make-tea", "brew-tea", content=text, keep=["brew-tea"]), Say("Done.")])
    async with kept_home(tmp_path, script, more=f"{OLD}learning:\n  mode: propose\n") as kept:
        await kept.make("make-tea", TEA)
        await kept.make("brew-tea", TEA_TOO)
        await kept.make("old-tea", TEA, days=-100)
        await looked(kept)
        before = kept.tree()
        run = await kept.curating.run()
        assert ({each.state for each in run.changes}, kept.tree() == before) == ({"waits"}, True)
        waiting = await kept.here.runtime.store.proposals.waiting()
        assert [(each.action, each.item) for each in waiting] == [
            ("delete", "old-tea"),
            ("edit", "make-tea"),
            ("write_file", "make-tea"),
            ("delete", "brew-tea"),
        ]
        learned = kept.here.runtime.learner.work.learned
        assert "together with p2, p4" in await learned.show("p3")
        assert "together" not in await learned.show("p1")

        said = await learned.approve("p4")  # A join is one thing: the text, the file that is kept, and who goes.

        assert [line.split()[0] for line in said.splitlines()] == ["p2", "p3", "p4"]
        assert [each.name for each in await learned.waiting()] == ["p1"]
        assert (await learned.reject("p1")) == "p1 is rejected."
        assert set(kept.tree()) == {"old-tea/SKILL.md", "make-tea/SKILL.md", "make-tea/references/brew-tea.md"}


async def test_of_a_join_that_does_not_fit_any_more_nothing_is_put_aside(tmp_path: Path):
    text = skill_text("make-tea", "Makes tea. Use it to make or brew tea.", TEA)
    script = Upkeep([join("make-tea", "brew-tea", content=text, keep=["brew-tea"]), Say("Done.")])
    async with kept_home(tmp_path, script, more=f"{OLD}learning:\n  mode: propose\n") as kept:
        await kept.make("make-tea", TEA)
        await kept.make("brew-tea", TEA_TOO)
        await looked(kept)
        await kept.curating.run()
        shutil.rmtree(kept.here.runtime.skills.home / "make-tea")
        learned = kept.here.runtime.learner.work.learned

        with pytest.raises(HermesError, match="p1 is still open"):
            await learned.approve("p2")

        assert [each.name for each in await learned.waiting()] == ["p1", "p2", "p3"]
        assert "brew-tea/SKILL.md" in kept.tree()


async def test_grades_follow_from_points_and_what_was_graded_is_not_asked_about_again(tmp_path: Path):
    script = Upkeep([[points("make-tea"), points("make-coffee", 0)], Say("Done.")])
    async with kept_home(tmp_path, script) as kept:
        await kept.make("make-tea", TEA)
        await kept.make("make-coffee")
        await looked(kept)
        run = await kept.curating.run()
        assert {name: each.grade for name, each in run.grades.items()} == {"make-tea": "A", "make-coffee": "D"}
        assert [row.grade for row in (await kept.curating.status()).skills] == ["D", "A"]
        asked = script.asked
        await kept.curating.run()
        assert script.asked == asked


async def test_a_model_that_fails_ends_its_part_and_not_the_rest(tmp_path: Path):
    async with kept_home(tmp_path, Upkeep([Status(400)])) as kept:
        await kept.make("make-tea", TEA)
        await kept.make("old-tea", TEA, days=-100)
        await looked(kept)
        run = await kept.curating.run()
        (job, *_) = await kept.here.runtime.store.learning.list(JobKind.CURATOR)
        assert ([each.state for each in run.changes], bool(run.failed), job.state) == (["done"], True, JobState.FAILED)
        assert "ended early" in markdown(run)


async def test_the_money_of_a_pass_stands_in_the_account_and_in_the_ledger_of_usage(tmp_path: Path):
    async with kept_home(tmp_path, Upkeep([points("make-tea"), Say("Done.")])) as kept:
        await kept.make("make-tea", TEA)
        await looked(kept)
        run = await kept.curating.run()
        rows = await kept.here.runtime.store.usage.rows("")
        stats = stats_lines(await kept.here.runtime.learner.work.learned.brought())
        assert ([row.purpose for row in rows], run.calls) == (["curator", "curator"], 2)
        assert any(line.startswith("curator: 2 ended") and "2 model calls" in line for line in stats)


async def test_versions_of_a_pass_are_the_curators_and_can_be_undone_one_by_one(tmp_path: Path):
    async with kept_home(tmp_path, Upkeep([patch("make-tea", "Pour it", "Pour the water"), Say("Done.")])) as kept:
        await kept.make("make-tea", TEA)
        await looked(kept)
        before = kept.tree()
        run = await kept.curating.run()
        (number,) = run.changes[0].versions
        version = await kept.here.runtime.store.versions.get(number)
        assert version is not None
        assert (version.change.author, version.change.kind) == (Author.CURATOR, Kind.SKILL)
        await kept.here.runtime.learner.work.learned.undo(str(number), "cli:me")
        assert kept.tree() == before
        with pytest.raises(HermesError, match="There is no pass"):
            await kept.curating.rollback("20000101-000000")


async def test_a_skill_that_a_bundle_names_is_kept(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("make-tea", TEA, days=-100)
        bundles = bundles_of(kept.here.runtime.skills.home)
        bundles.put(Bundle(name="drinks", skills=("make-tea",)))
        (kept.root / "skill-bundles/broken.yaml").write_text("[")
        await looked(kept)
        run = await kept.curating.run()
        (row,) = (await kept.curating.status()).skills
        assert (run.changes, row.why_not) == ((), "the bundle `drinks` names it")


async def test_what_people_said_is_not_kept_beside_their_conversations(tmp_path: Path):
    async with kept_home(tmp_path, Upkeep(talk=loads)) as kept:
        await kept.make("make-tea", TEA)
        await kept.ask("make-tea", "some tea for my aunt Ottilie")
        await looked(kept)
        run = await kept.curating.run()
        assert run.checked == 1
        folder = kept.root / "logs/curator" / run.id
        assert not [each for each in folder.iterdir() if "Ottilie" in each.read_text()]


async def test_a_pass_that_died_after_its_report_keeps_it(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("make-tea", TEA, days=-100)
        await looked(kept)
        run = await kept.curating.run()
        job = await kept.here.runtime.store.learning.get(run.job)
        assert job is not None
        account = await kept.curating.curator(Claim(job=job, lease=Lease(id=job.id, worker="w", epoch=1)))
        assert (account.kept, await kept.curating.one(run.id)) == (1, run)


async def test_the_report_is_a_file_beside_its_figures(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("make-tea", TEA, days=-100)
        await looked(kept)
        run = await kept.curating.run()
        folder = kept.root / "logs/curator" / run.id
        assert json.loads((folder / "run.json").read_text())["changes"][0]["name"] == "make-tea"
        assert (folder / "REPORT.md").read_text() == markdown(run)
