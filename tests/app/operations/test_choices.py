"""What a session chooses for itself."""

from pathlib import Path

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.choices import agree, agreed, choices_of, choose_approvals, choose_plan
from tests.app.place import counting, place


async def test_approvals_and_a_plan_hold_in_their_session_alone(tmp_path: Path):
    async with place(tmp_path, counting) as here:
        own = Access(system=here.runtime, who=here.runtime.owner, session=here.record.id)
        await choose_approvals(own, "smart")
        await choose_plan(own, plans=True)
        chosen = await choices_of(own)
        await here.type("/new")
        other = await choices_of(Access(system=here.runtime, who=here.runtime.owner, session=here.record.id))
        await choose_plan(own, plans=False)
        await choose_approvals(own, "")
        after = await choices_of(own)

    assert (chosen.approvals, chosen.plans) == ("smart", True)
    assert after == other
    assert (other.approvals, other.plans) == ("ask", False)


async def test_consent_is_bound_to_what_was_agreed_to(tmp_path: Path):
    async with place(tmp_path, counting) as here:
        access = Access(system=here.runtime, who=here.runtime.owner, session=here.record.id)
        await agree(access, "abc")
        assert await agreed(access, "abc")
        assert not await agreed(access, "abd")


@pytest.mark.parametrize("mode", ["off", "smart"])
async def test_the_settings_hold_where_nothing_was_chosen(tmp_path: Path, mode: str):
    async with place(tmp_path, counting, more=f"approvals:\n  mode: '{mode}'\n") as here:
        access = Access(system=here.runtime, who=here.runtime.owner, session=here.record.id)
        assert (await choices_of(access)).approvals == mode
