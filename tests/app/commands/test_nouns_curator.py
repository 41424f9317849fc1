"""/curator in a conversation."""

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.app.commands.command import Desk, perform
from hermes_agent.core.chat import Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.learning.curator.plan import paused
from tests.learning.curator.harness import OLD, Upkeep, kept_home, points


async def test_a_person_looks_after_skills_in_the_chat(tmp_path: Path):
    async with kept_home(tmp_path, Upkeep([points("make-tea")])) as kept:
        await kept.make("make-tea")
        await kept.make("make-coffee", days=-100)
        say = kept.here.text
        assert "make-coffee: due to be archived, 100 days unused" in await say("/curator")
        assert "This pass only reported: nothing was changed." in await say("/curator look")
        assert "1 done" in await say("/curator run")
        assert "- make-tea: active, 0 days unused, A\nArchived: make-coffee" in await say("/curator status")
        assert "Archived, unused: `make-coffee`" in await say("/curator report")
        assert await say("/curator rollback") == "`make-coffee` is as it was."
        assert await say("/curator pin make-tea") == "`make-tea` is pinned, from the next session on."
        assert await say("/curator unpin make-tea") == "`make-tea` is no longer pinned, from the next session on."
        assert await say("/curator pause") == "The curator is paused."
        assert (await say("/curator status")).startswith("Paused.")
        await kept.curating.journal_file.change(paused(False))
        assert await say("/curator resume") == "The curator runs again."
        with pytest.raises(HermesError, match="No archived skill"):
            await say("/curator restore make-coffee")
        with pytest.raises(HermesError, match="rollback"):
            await say("/curator delete everything")


async def test_only_the_owner_does(tmp_path: Path):
    async with kept_home(tmp_path, more=f"{OLD}curator:\n  enabled: false\n") as kept:
        here = kept.here
        assert "Automatic passes are off" in await here.text("/curator")
        line = here.inbound("/curator run")
        member = replace(line, principal=replace(line.principal, standing=Standing.MEMBER))
        with pytest.raises(HermesError, match="Only the owner"):
            await perform(Desk(runtime=here.runtime, record=here.record, inbound=member, busy=False))
