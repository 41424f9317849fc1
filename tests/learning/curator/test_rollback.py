"""Taking a pass back."""

import shutil
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.learning.curator.rollback import Rollback
from hermes_agent.skills.changes import By
from hermes_agent.store.versions import Author
from tests.learning.curator.harness import kept_home

BY = By(author=Author.BACKGROUND)


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
        back = Rollback(
            clock=kept.here.runtime.clock,
            writer=kept.curating.writer,
            journal_file=kept.curating.journal_file,
            places=kept.curating.places,
            by=lambda _: BY,
        )

        with pytest.raises(HermesError, match="changed nothing"):
            await back(run.id)
        with pytest.raises(HermesError, match="There is no pass left to undo"):
            await back()


async def test_what_a_rollback_makes_anew_is_the_agents_as_before(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("make-tea", days=-100)
        await kept.curating.run()
        await kept.curating.run()
        shutil.rmtree(kept.here.runtime.skills.home / ".archive")
        assert await kept.curating.rollback() == ["`make-tea` is as it was."]
        (row,) = (await kept.curating.status()).skills

    assert row.why_not == ""
