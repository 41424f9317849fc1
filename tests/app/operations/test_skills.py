"""Skills, by who asks."""

from pathlib import Path

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.skills import list_skills, pin_skill
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.skills.library import NoSkill
from tests.learning.curator.harness import kept_home


def asked(kept, standing: Standing) -> Access:
    return Access(system=kept.here.runtime, who=Principal(platform="api", user="anna", standing=standing))


async def test_a_pin_is_put_on_and_taken_off(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        owner = asked(kept, Standing.OWNER)
        await kept.make("make-tea")
        await pin_skill(owner, "make-tea")
        assert [(row.pinned, row.why_not) for row in (await kept.curating.status()).skills] == [
            (True, "a person pinned it")
        ]
        await pin_skill(owner, "make-tea", off=True)
        assert [row.pinned for row in (await kept.curating.status()).skills] == [False]
        with pytest.raises(NoSkill):
            await pin_skill(owner, "no-such-skill")


async def test_a_guest_sees_no_skill_and_a_member_changes_none(tmp_path: Path):
    async with kept_home(tmp_path) as kept:
        await kept.make("make-tea")
        shown = [
            {each.name for each in await list_skills(asked(kept, standing), 1_000)}
            for standing in (Standing.OWNER, Standing.MEMBER, Standing.GUEST)
        ]
        assert [("make-tea" in names) for names in shown] == [True, True, False]
        with pytest.raises(HermesError, match="Only the owner may manage"):
            await pin_skill(asked(kept, Standing.MEMBER), "make-tea")
