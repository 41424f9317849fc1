"""Taking a pass back."""

import shutil
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.learning.curator.rollback import put_back
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

        with pytest.raises(HermesError, match="changed nothing"):
            await kept.curating.rollback(run.id)
        with pytest.raises(HermesError, match="No pass changed anything"):
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
