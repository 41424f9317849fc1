"""Gateways are killed again and again while four platforms fail, tell things twice and late, and drop their answers.

40 conversations. With `--full` they are 200, who say 5,000 messages, and a kill comes every few seconds for minutes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes_agent.core.chat import SlotState
from hermes_agent.store.database import open_store
from hermes_agent.store.inbox import Ending
from hermes_agent.store.outbox import Tally
from tests.doubles.postgres import PostgresCluster
from tests.faults.storm import Crew, Side, Storm, home_of, judged

log = logging.getLogger(__name__)

GATEWAY = ("gateway", "run")
SHORT = Storm(messages=120, kills=3, apart=(1.5, 3.0))
LONG = Storm(messages=5000, kills=40, apart=(5.0, 8.0), patience=600.0)
SHORT_SHARED, LONG_SHARED = (
    Storm(messages=120, kills=3, apart=(1.5, 3.0), seed=2),
    Storm(messages=5000, kills=50, apart=(4.0, 7.0), patience=900.0, seed=2),
)


MAIL = (
    "SELECT source, state, CASE WHEN session.id IS NULL THEN 0 ELSE 1 END AS mine, count(*) "
    "FROM inbox LEFT JOIN session ON session.id = inbox.lane GROUP BY source, state, mine"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a storm left in the database: slots, how mail ended on each platform, and the conversations. `ways` are the
    states of what was passed on to its conversation by the lane of commands: what was heard while that was looked
    through."""

    slots: Tally
    mail: Mapping[tuple[str, str], int]
    ways: set[str]
    sessions: int


async def left_in(url: str) -> Left:
    store = await open_store(url)
    try:
        rows = await store.read(lambda tx: tx.rows(MAIL))
        lanes = await store.read(
            lambda tx: tx.rows("SELECT DISTINCT lane FROM inbox JOIN session ON session.id = lane")
        )
        return Left(
            slots=await store.outbox.tally(),
            mail={(source, state): count for source, state, mine, count in rows if mine},
            ways={state for _, state, mine, _ in rows if not mine},
            sessions=len(lanes),
        )
    finally:
        await store.close()


async def receipts(url: str) -> None:
    """Return when each slot has its receipt: what people see may have been sent without an answer. Not for ever: the
    check tells."""
    store = await open_store(url)
    try:
        async with asyncio.timeout(90):
            while set((await store.outbox.tally()).states) != {SlotState.SENT}:
                await asyncio.sleep(0.25)
    except TimeoutError:
        log.warning("not every slot has a receipt")
    finally:
        await store.close()


def check(storms: list[Side], left: Left, kills: int) -> None:
    """Once where that can be had, else marked and counted; in order; and nothing is left, or refused."""
    verdicts = {side.name: judged(side) for side in storms}
    for side in storms:
        ended = {state: count for (source, state), count in left.mail.items() if source == side.name}
        log.info("%s: %d said, %s, %d replies marked", side.name, side.said, ended, len(verdicts[side.name].marked))
    log.info("%d conversations, %d kills", left.sessions, kills)
    assert {name: verdict.twice for name, verdict in verdicts.items() if verdict.twice} == {}
    told = {side.name: side.told for side in storms}
    for name, verdict in verdicts.items():
        for chat, seen in verdict.disordered.items():
            log.error("%s %s: told %s, seen %s", name, chat, told[name][chat], seen)
        assert verdict.disordered == {}, name
    assert {side.name: verdicts[side.name].marked for side in storms if side.exact} == {
        "discord": set(),
        "slack": set(),
    }
    assert left.slots.repeated == sum(len(verdict.marked) for verdict in verdicts.values())
    assert set(left.slots.states) == {SlotState.SENT}
    assert left.mail == {(side.name, Ending.ANSWERED): side.said for side in storms}
    assert left.ways <= {Ending.ANSWERED}
    assert left.sessions == sum(side.people for side in storms)


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_every_message_is_answered_once_in_order_or_marked(tmp_path: Path, full: bool):
    storm = LONG if full else SHORT
    async with home_of(tmp_path / "home", people=20 if full else 4) as (storms, model):
        with Crew(tmp_path / "home", {"gateway": GATEWAY}) as crew:
            await storm.rage(storms, model, crew)
            await receipts(f"sqlite:///{tmp_path / 'home' / 'hermes.db'}")
            codes = await crew.end()

    assert codes == [0]
    check(storms, await left_in(f"sqlite:///{tmp_path / 'home' / 'hermes.db'}"), crew.kills)


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_two_gateways_and_two_workers_on_one_postgresql_do_the_same(
    tmp_path: Path, full: bool, cluster: PostgresCluster
):
    storm = LONG_SHARED if full else SHORT_SHARED
    url = cluster.fresh_url()
    async with home_of(tmp_path / "home", url, people=20 if full else 4) as (storms, model):
        commands = {"one": GATEWAY, "two": GATEWAY, "three": ("worker",), "four": ("worker",)}
        with Crew(tmp_path / "home", commands) as crew:
            await storm.rage(storms, model, crew)
            await receipts(url)
            codes = await crew.end()

    assert codes == [0, 0, 0, 0]
    check(storms, await left_in(url), crew.kills)
