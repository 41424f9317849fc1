"""Operations on models, and on what a session chooses for itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.choices import agree, agreed, choices_of, choose_approvals, choose_plan
from hermes_agent.app.operations.models import ask_once
from hermes_agent.cli.offers import route_to
from hermes_agent.cli.operation import offline
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
from hermes_agent.store.usage import GroupBy
from tests.app.place import counting, place


async def test_a_model_that_lives_in_this_process_is_started_to_be_asked(tmp_path: Path) -> None:
    surface = Surface(invocation=Invocation(), variables={"HERMES_HOME": str(tmp_path)})

    async with offline(surface) as access:
        answered = await ask_once(access, surface.secrets, route_to(surface, "demo/scripted"), principal="cli:me")
        (total,) = await access.system.store.usage.totals(GroupBy.PRINCIPAL)

    assert answered.route == "demo/scripted"
    assert answered.reply.message.text
    assert (total.key, total.calls, total.open) == ("cli:me", 1, 0)


async def test_of_a_mixture_every_model_is_asked(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("moa:\n  council:\n    members: [demo/scripted, demo/scripted]\n")
    surface = Surface(invocation=Invocation(), variables={"HERMES_HOME": str(tmp_path)})

    async with offline(surface) as access:
        answered = await ask_once(access, surface.secrets, route_to(surface, "moa/council"))
        totals = await access.system.store.usage.totals(GroupBy.PURPOSE)

    assert answered.route == "moa/council"
    assert [(total.key, total.calls) for total in totals] == [("mixture", 2), ("test", 1)]


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
