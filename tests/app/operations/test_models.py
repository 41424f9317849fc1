"""One question to a model."""

from __future__ import annotations

from pathlib import Path

from hermes_agent.app.operations.models import ask_once
from hermes_agent.cli.offers import route_to
from hermes_agent.cli.operation import offline
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
from hermes_agent.store.usage import GroupBy


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
