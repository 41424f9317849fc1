"""Gateways are killed again and again while four platforms fail, tell things twice and drop their answers.

200 conversations. `--full` says 5,000 messages and kills every few seconds for minutes.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from hermes_agent.core.outbound import SlotState
from hermes_agent.store.database import open_store
from hermes_agent.store.outbox import Tally
from hermes_agent.testing.postgres import PostgresCluster
from tests.faults.storm import Crew, Side, Storm, home_of, judged

log = logging.getLogger(__name__)

GATEWAY = ("gateway", "run")
SHORT = Storm(messages=600, kills=5)
LONG = Storm(messages=5000, kills=40, apart=(5.0, 8.0), patience=600.0)
SHORT_SHARED, LONG_SHARED = (
    Storm(messages=400, kills=5, seed=2),
    Storm(messages=5000, kills=50, apart=(4.0, 7.0), patience=900.0, seed=2),
)


async def tally(url: str) -> Tally:
    """What became of everything that was to be said."""
    store = await open_store(url)
    try:
        return await store.outbox.tally()
    finally:
        await store.close()


def check(storms: list[Side], counted: Tally, kills: int) -> None:
    """Once where that can be had, else marked and counted; in order; and nothing is left."""
    verdicts = {side.name: judged(side) for side in storms}
    log.info("%d kills: %s", kills, {name: len(verdict.marked) for name, verdict in verdicts.items()})
    assert {name: verdict.twice for name, verdict in verdicts.items() if verdict.twice} == {}
    assert {name: verdict.disordered for name, verdict in verdicts.items() if verdict.disordered} == {}
    assert {side.name: verdicts[side.name].marked for side in storms if side.exact} == {
        "discord": set(),
        "slack": set(),
    }
    assert counted.repeated == sum(len(verdict.marked) for verdict in verdicts.values())
    assert set(counted.states) == {SlotState.SENT}


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_every_message_is_answered_once_in_order_or_marked(tmp_path: Path, request: pytest.FixtureRequest):
    storm = LONG if request.config.getoption("--full", default=False) else SHORT
    async with home_of(tmp_path / "home") as (storms, model):
        with Crew(tmp_path / "home", {"gateway": GATEWAY}) as crew:
            await storm.rage(storms, model, crew)
            codes = await crew.end()

    assert codes == [0]
    check(storms, await tally(f"sqlite:///{tmp_path / 'home' / 'hermes.db'}"), crew.kills)


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_two_gateways_and_two_workers_on_one_postgresql_do_the_same(
    tmp_path: Path, request: pytest.FixtureRequest, cluster: PostgresCluster
):
    storm = LONG_SHARED if request.config.getoption("--full", default=False) else SHORT_SHARED
    url = cluster.fresh_url()
    async with home_of(tmp_path / "home", url) as (storms, model):
        commands = {"one": GATEWAY, "two": GATEWAY, "three": ("worker",), "four": ("worker",)}
        with Crew(tmp_path / "home", commands) as crew:
            await storm.rage(storms, model, crew)
            codes = await crew.end()

    assert codes == [0, 0, 0, 0]
    check(storms, await tally(url), crew.kills)
