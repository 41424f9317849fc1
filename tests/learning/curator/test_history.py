"""What reviews saw overlap reaches the next pass of the curator, once, and the owner."""

from pathlib import Path

from hermes_agent.learning.curator.curating import What
from hermes_agent.learning.curator.plan import kept_apart
from hermes_agent.learning.curator.report import markdown
from hermes_agent.providers.demo.script import Say
from hermes_agent.store.learning.jobs import Account, Job, JobKind, JobState
from hermes_agent.store.versions import Author
from hermes_agent.testing.scripted import Status
from tests.learning.curator.harness import Kept, Upkeep, kept_home
from tests.learning.curator.test_curating import TEA, looked


async def report_overlap(kept: Kept, *names: str) -> None:
    """A review ended that saw these overlap."""
    store = kept.here.runtime.store
    number = kept.here.runtime.ids.short()
    review = Job(
        id=number, kind=JobKind.REVIEW, session="s", principal="p", what="skills", first=1, last=1, created=0.0
    )
    await store.write(lambda tx: store.learning.queue(tx, review))
    claim = await store.learning.claim([JobKind.REVIEW])
    assert claim is not None
    await store.learning.end(claim, JobState.DONE, Account(overlaps=(tuple(sorted(names)),)))


async def test_what_a_review_saw_overlap_is_put_before_the_next_pass_once(tmp_path: Path):
    script = Upkeep([Say("Nothing.")])
    async with kept_home(tmp_path, script) as kept:
        await kept.make("make-tea", TEA)
        await kept.make("serve-guests", "1. Ask who comes.\n2. Make what they like.")
        await looked(kept)
        await kept.curating.run()
        await kept.curating.run()
        assert script.asked == 1  # Nothing is new.

        await report_overlap(kept, "make-tea", "serve-guests")
        await report_overlap(kept, "make-tea", "gone")
        status = await kept.curating.status()
        assert status.overlaps == (("make-tea", "serve-guests"),)
        assert "Overlapping, for the next pass: make-tea + serve-guests" in status.lines
        trial = await kept.curating.run(look=True)
        assert (trial.seen, (await kept.curating.status()).overlaps) == (status.overlaps, status.overlaps)

        run = await kept.curating.run()
        assert script.asked == 3
        heard = kept.here.server.exchanges[-1].heard
        assert "as reviews of conversations saw:\n- make-tea, serve-guests\n" in "\n".join(
            m.text for m in heard.messages
        )
        assert run.seen == (("make-tea", "serve-guests"),)
        assert "## Overlapping, as reviews saw\n\n- make-tea, serve-guests\n" in markdown(run)
        assert (await kept.curating.status()).overlaps == ()
        assert await kept.here.runtime.store.learning.overlaps() == []
        await kept.curating.run()
        assert script.asked == 3


async def test_what_a_review_saw_overlap_waits_while_the_model_cannot_be_asked(tmp_path: Path):
    async with kept_home(tmp_path, Upkeep([Status(400)])) as kept:
        await kept.make("make-tea", TEA)
        await kept.make("serve-guests")
        await looked(kept)
        await report_overlap(kept, "make-tea", "serve-guests")
        assert (await kept.curating.run()).failed
        assert (await kept.curating.status()).overlaps == (("make-tea", "serve-guests"),)


async def test_an_overlap_with_a_persons_skill_is_told_and_one_that_was_taken_apart_is_not(tmp_path: Path):
    script = Upkeep([Say("Nothing.")])
    async with kept_home(tmp_path, script) as kept:
        await kept.make("make-tea", TEA)
        await kept.make("brew-tea", "1. Something else.")
        await kept.make("mine-tea", TEA, author=Author.OWNER)
        await looked(kept)
        await kept.curating.run()
        await kept.curating.journal_file.change(kept_apart([("make-tea", "brew-tea")]))
        await report_overlap(kept, "make-tea", "brew-tea")
        await report_overlap(kept, "make-tea", "mine-tea")
        assert (await kept.curating.status()).overlaps == (("make-tea", "mine-tea"),)

        run = await kept.curating.run()
        assert script.asked == 1  # Nothing that it could join.
        assert (run.seen, await kept.here.runtime.store.learning.overlaps()) == ((("make-tea", "mine-tea"),), [])


async def test_a_pass_that_was_killed_after_its_plan_takes_its_overlaps_along(tmp_path: Path):
    async with kept_home(tmp_path, Upkeep([Say("Nothing.")])) as kept:
        await kept.make("make-tea", TEA)
        await kept.make("serve-guests")
        await looked(kept)
        await report_overlap(kept, "make-tea", "serve-guests")
        store, curator = kept.here.runtime.store, kept.curating.curator
        await kept.curating._queue([What.ASKED, What.UPKEEP])
        claim = await store.learning.claim([JobKind.CURATOR])
        assert claim is not None
        await curator(claim)
        assert await store.learning.overlaps() == [("make-tea", "serve-guests")]  # It ended nowhere yet.

        await store.learning.release(claim)
        await kept.here.runtime.learner.run()
        assert await store.learning.overlaps() == []
        assert (await kept.curating.runs())[0].seen == (("make-tea", "serve-guests"),)
