"""Doing what was planned: only while things are as they were, nothing twice, and back where a query lost its answer."""

from pathlib import Path

from hermes_agent.core.clock import SystemClock
from hermes_agent.learning.curator.applying import Applying
from hermes_agent.learning.curator.history import QueryHistory
from hermes_agent.learning.curator.plan import Plan, Step
from hermes_agent.skills.depot import hash_of_folder
from hermes_agent.store.learning.jobs import Claim
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
        proposing=kept.here.runtime.learner.proposing,
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
