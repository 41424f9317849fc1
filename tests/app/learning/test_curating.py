"""When the curator begins, and what a person asks of it."""

import asyncio
from pathlib import Path

import pytest

from hermes_agent.app.learning.curating import NEVER, SOON, Row, Status
from hermes_agent.core.errors import HermesError
from hermes_agent.learning.curator.curating import What
from hermes_agent.learning.curator.plan import RUN
from hermes_agent.learning.drafts import OtherWriters
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.store.learning.jobs import JobKind, JobState
from hermes_agent.store.versions import Author, Backing, By
from tests.app.place import Place
from tests.learning.curator.harness import OLD, QUIET, Kept, Upkeep, kept_home, points
from tests.learning.harness import learning_place

BY = By(author=Author.BACKGROUND)


async def passes(here: Place) -> list[tuple[str, str]]:
    """The passes and what became of them, the newest first."""
    return [(job.what, job.state.value) for job in await here.runtime.store.learning.list(JobKind.CURATOR)]


async def idle(kept: Kept) -> float:
    """Look whether a pass is due, and do it where one is."""
    wait = await kept.curating.when_idle()
    await kept.here.runtime.learner.run()
    return wait


async def test_the_first_pass_only_looks_and_the_next_is_a_week_later(tmp_path: Path):
    async with kept_home(tmp_path, more=QUIET) as kept:
        await kept.make("make-tea", days=-100)
        assert await idle(kept) == NEVER
        assert await passes(kept.here) == [("look", "done")]
        assert 6 * 86_400 < await idle(kept) <= 7 * 86_400
        assert "make-tea/SKILL.md" in kept.tree()

        kept.ahead(7.01)
        assert await idle(kept) == NEVER
        assert (await passes(kept.here))[0] == ("states+upkeep", "done")
        assert kept.tree() == {}


async def test_nothing_begins_while_somebody_talks(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.here.say("Hello")
        assert 7_000 < await kept.curating.when_idle() <= 7_200
        assert await passes(kept.here) == []
        number = await kept.curating._queue(["states"])
        await kept.here.runtime.learner.run()
        job = await kept.here.runtime.store.learning.get(number)
        assert job is not None
        assert (job.state, job.account.note) == (JobState.FAILED, "Somebody is at work again: another time.")


async def test_a_pass_that_another_process_did_meanwhile_is_not_done_again(tmp_path: Path):
    async with kept_home(tmp_path, more=QUIET) as kept:
        await idle(kept)
        await kept.curating._queue(["states"])
        await kept.here.runtime.learner.run()
        assert await passes(kept.here) == [("states", "failed"), ("look", "done")]


async def test_a_pass_that_is_in_line_is_not_put_there_twice(tmp_path: Path):
    async with kept_home(tmp_path, more=QUIET) as kept:
        await kept.curating._queue(["look"])
        await idle(kept)
        assert await passes(kept.here) == [("look", "done")]


async def test_a_pass_that_died_before_its_report_counts_once_as_one_that_brought_nothing(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("make-tea")
        await kept.curating.run()
        store = kept.here.runtime.store
        await kept.curating._queue([What.ASKED, What.STATES, What.UPKEEP])
        claim = await store.learning.claim()
        assert claim is not None
        await kept.curating.curator(claim)
        await store.learning.release(claim)
        newest = max((kept.root / "logs/curator").glob(f"*/{RUN}"), key=lambda file: file.stat().st_mtime_ns)
        newest.unlink()

        await kept.here.runtime.learner.run()

        assert newest.exists()
        assert (await kept.curating.status()).empty == 1


@pytest.mark.parametrize("more", ["curator:\n  enabled: false\n", "learning:\n  mode: 'off'\n"])
async def test_nothing_begins_where_it_is_switched_off(tmp_path: Path, more: str):
    async with kept_home(tmp_path, more=f"{OLD}{more}") as kept:
        assert await kept.curating.due() is None
        assert await kept.curating.when_idle() == NEVER


async def test_a_paused_curator_begins_nothing_and_goes_on_when_it_is_told(tmp_path: Path):
    async with kept_home(tmp_path, more=QUIET) as kept:
        await kept.curating.pause(True)
        assert (await kept.curating.due(), (await kept.curating.status()).paused) == (None, True)
        await kept.curating.pause(False)
        assert await kept.curating.due() == 0.0


async def test_nothing_is_looked_after_where_nothing_is_learned(tmp_path: Path):
    async with kept_home(tmp_path, more=f"{OLD}learning:\n  mode: 'off'\n") as kept:
        with pytest.raises(HermesError, match="Learning and the curator are off"):
            await kept.curating.run()


async def test_passes_that_bring_nothing_make_room_and_one_that_does_resets_it(tmp_path: Path):
    script = Upkeep([Say("Nothing.")])
    async with kept_home(tmp_path, script, more=QUIET) as kept:
        await kept.make("make-tea", "1. Boil the water.")
        await kept.make("old-tea", days=-89)  # What is put aside for its age was not brought by a model.
        await idle(kept)
        for week in range(1, 8):
            kept.ahead(7.1 * week)
            await kept.used("make-tea", 7.1 * week)
            await kept.writer().write_file("make-tea", f"references/{week}.md", b"new", BY)
            await idle(kept)
        did = [what for what, _ in await passes(kept.here)][::-1]
        assert did == ["look", *["states+upkeep"] * 2, "states", "states+upkeep", *["states"] * 3]
        assert (await kept.curating.status()).empty == 3

        script.steps = [
            Call("skill_patch", {"name": "make-tea", "old_string": "Boil the water", "new_string": "Boil water"})
        ]
        await kept.curating.run()
        assert (await kept.curating.status()).empty == 0


async def test_a_process_that_lives_long_begins_by_itself(tmp_path: Path):
    more = f"{OLD}curator:\n  min_idle_hours: 0\n"
    async with learning_place(tmp_path, Upkeep(), more=more, works=True) as here:  # type: ignore[arg-type]  # a script
        async with asyncio.timeout(10):
            while not [each for each in await passes(here) if each[1] == "done"]:
                await asyncio.sleep(0.01)
        here.runtime.learner.rest(3600)
        here.runtime.learner.rest(0)
    assert SOON < NEVER


async def test_a_review_that_looks_a_skill_through_does_not_use_it(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("make-tea")
        tools = kept.here.runtime.learner.work.writers(kept.here.record).tools(Backing())
        beside = OtherWriters(key="k", session=kept.here.record.id, workspace="", speaker="")
        await tools["skill_view"].run({"name": "make-tea"}, beside)
        assert kept.here.runtime.skills.usage.all() == {}


async def test_what_never_ended_is_told(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        (kept.root / "skills").mkdir(exist_ok=True)
        (kept.root / "logs/curator").write_text("a file where a folder must be")
        with pytest.raises(HermesError, match="did not finish"):
            await kept.curating.run()


async def test_a_limit_of_money_holds_a_pass(tmp_path: Path):
    more = f"{OLD}curator:\n  max_money: 0\n  max_tokens: 1000\n"
    async with kept_home(tmp_path, Upkeep([points("make-tea")]), more=more) as kept:
        await kept.make("make-tea")
        await kept.curating.run()
        run = await kept.curating.run()
        assert run.calls == 0
        assert run.failed


def status(**more: object) -> Status:
    facts = {"enabled": True, "paused": False, "passed": 0.0, "due": 0.0, "empty": 0, "last": "", "skills": ()}
    return Status(**{**facts, "archived": (), "overlaps": (), **more})


@pytest.mark.parametrize(
    ("more", "when"),
    [
        ({"paused": True}, "Paused. No pass has ended yet."),
        ({"due": None}, "Automatic passes are off (`curator.enabled`, `learning.mode`). No pass has ended yet."),
        ({}, "No pass has ended yet. The first, which only reports, is due, once nobody talks."),
        ({"empty": 2}, "once nobody talks. 2 in a row changed nothing: Hermes asks a model less often."),
    ],
)
def test_when_the_next_pass_is_stands_in_a_sentence(more: dict[str, object], when: str):
    assert status(**more).when.endswith(when)


def test_each_skill_has_a_line_and_what_was_put_aside_another():
    row = Row(name="tea", age="active", days=3, pinned=False, grade="B", why_not="")
    theirs = Row(name="milk", age="", days=0, pinned=False, grade="", why_not="a person wrote it")

    assert status(skills=(row, theirs), archived=("old",)).lines[1:] == [
        "- tea: active, 3 days unused, B",
        "- milk: a person wrote it, 0 days unused",
        "Archived: old",
    ]


async def test_a_skill_that_is_due_to_be_put_aside_says_so_and_a_grade_is_of_the_text_that_had_it(tmp_path: Path):
    async with kept_home(tmp_path, Upkeep([points("make-tea")])) as kept:
        await kept.make("make-tea")
        await kept.make("old-tea", days=-100)
        await kept.curating.run(look=True)
        rows = {row.name: row for row in (await kept.curating.status()).skills}
        assert rows["old-tea"].age == "due to be archived"
        assert rows["make-tea"].grade

        await kept.writer().write_file("make-tea", "references/a.md", b"new", By(author=Author.BACKGROUND))
        rows = {row.name: row for row in (await kept.curating.status()).skills}
        assert rows["make-tea"].grade == ""
