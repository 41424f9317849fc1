"""Two homes on one database, which is PostgreSQL where it is installed: the store's own suites hold for one beside the
other, which stays as it was."""

import inspect
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.core.clock import Clock
from hermes_agent.core.mandate import Mandate, Work
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.learning.jobs import OVERLAPPED
from hermes_agent.store.transaction import Dialect, Row
from hermes_agent.store.work.card_runs import NEW
from hermes_agent.store.work.goals import State
from hermes_agent.store.workers import Timings
from hermes_agent.testing.clock import FakeClock
from tests.databases import OpenAnother, empty_database
from tests.doubles.postgres import binaries
from tests.store import (
    test_cooldowns,
    test_inbox,
    test_lanes,
    test_outbox,
    test_pairing,
    test_sessions,
    test_usage,
    test_versions,
)
from tests.store.accounts import test_accounts
from tests.store.facts import test_facts
from tests.store.learning import test_jobs, test_lessons, test_proposals
from tests.store.made import add, mail, session
from tests.store.mcp import test_catalogue
from tests.store.work import test_board, test_children, test_goals
from tests.store.work.cron import test_rows

SUITES = (
    test_cooldowns,
    test_inbox,
    test_lanes,
    test_outbox,
    test_sessions,
    test_usage,
    test_versions,
    test_accounts,
    test_pairing,
    test_facts,
    test_jobs,
    test_lessons,
    test_proposals,
    test_catalogue,
    test_goals,
    test_children,
    test_rows,
    test_board,
)
# What looks past the store, at rows of every home.
RAW = re.compile(r'tx\.\w+\(\s*"(?:UPDATE|DELETE|SELECT|INSERT)|\.engine\b|database_url')
for suite in SUITES:
    for name, test in vars(suite).items():
        if inspect.iscoroutinefunction(test) and name.startswith("test_") and not RAW.search(inspect.getsource(test)):
            globals()[f"{name}_in_{suite.__name__.rpartition('.')[2]}"] = test

# Found from outside by other things than a session's id, or counted, or kept for a person.
ROOTS = (
    "session",
    "current_session",
    "inbox",
    "lane",
    "outbox",
    "pairing",
    "paired",
    "pairing_failure",
    "chat_fact",
    "account",
    "usage",
    "cool_down",
    "version",
    "known_fact",
    "known_fact_change",
    "learning_job",
    "learning_pace",
    "learning_proposal",
    "learning_support",
    "learning_lesson",
    "learning_swept",
    "cron_job",
    "cron_instant",
    "home",
    "worker",
    "episode",
    "mandate",
    "mcp_link",
    "mcp_tool",
    "goal",
    "goal_round",
    "goal_check",
    "child",
    "board",
    "card",
    "card_run",
    "card_watch",
)
INHERITED = {
    "entry": "its session's",
    "effect": "its session's",
    "run": "its session's",
    "exposure": "its session's",
    "removal": "its session's",
    "learning_count": "its session's",
    "passage": "its session's",
    "card_dispatcher": "written no more",
    "card_link": "its cards'",
    "card_event": "its card's",
    "card_file": "its card's",
    "prefix": "content by its hash",
    "version_body": "content by its hash",
    "machine": "a machine serves any home",
    "hermes_format": "of the database",
    "commit_mark": "of the database",
    "timeline": "of the database",
    "indexed": "of the database",
}
TABLES = {
    Dialect.SQLITE: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
    "AND name NOT LIKE 'known_fact_words%'",
    Dialect.POSTGRES: "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
}
NEIGHBOUR, OWN = 1, 2


async def settle(store: Store) -> None:
    """One row at least of each root, under the keys that the suites use."""
    await add(store, session("n1", title="Mine"))
    await store.write(lambda tx: store.sessions.set_current(tx, "cli:dm:s1", "n1"))
    for number in range(30):
        await store.inbox.accept(mail(number), "n1" if number else "n0", ("main", "cli", "other")[number % 3])
    await test_outbox.put(store, test_outbox.letter(), test_outbox.letter("k2", chat="2"))
    code = await store.pairing.ask("telegram", "1", "Ann")
    await store.pairing.approve(code)
    for number in range(3):
        await store.pairing.ask("telegram", str(number), "Bob")
    await store.pairing.approve("WRONG")
    await store.facts.set("telegram:1", "topic", "theirs")
    await store.cool_downs.put([test_cooldowns.KEY, test_cooldowns.MODEL], 1.0)
    row = replace(test_accounts.ROW, call_id="n-1", session="n1", run="n", reserved=2.0)
    for rules in (test_accounts.DAY, test_accounts.EACH):
        call = replace(row, call_id=f"n-{len(rules.limits)}")
        await store.write(lambda tx, call=call, rules=rules: store.usage.reserve(tx, call, test_accounts.BID, rules))
    await test_versions.kept(store, replace(test_versions.CHANGE, session="n1"))
    await test_facts.KnownFacts(store.engine).add("cli:ann", test_facts.new(), test_facts.called("call"), 1.0)
    await test_jobs.queued(store, test_jobs.job("n-job", session="n1", created=0.0))
    await store.write(lambda tx: store.pace.note(tx, "cli:ann", "skills", empty=True))
    await test_proposals.kept(store, test_proposals.ONE)
    await store.write(lambda tx: tx.run(OVERLAPPED, "skill:deploy", "n1", 1.0))
    await store.lessons.sweep(1, [test_lessons.ONE])
    await store.mcp.put(test_catalogue.McpLink(server="files"), (test_catalogue.READ,))
    goal = replace(test_goals.GOAL, id="g_00000f", state=State.WAITING, untold="News.")
    await test_goals.kept(store, goal)
    await test_goals.due(store, goal)
    await store.write(lambda tx: store.goals.keep(tx, goal, "r1", "run", [test_goals.CHECK]))
    await store.write(lambda tx: store.mandates.put(tx, "n1", Mandate(kind=Work.CHILD)))
    await store.write(lambda tx: store.children.add(tx, test_children.child("n1"), 1))
    await store.cron_jobs.add(replace(test_rows.job("n-j"), name="job j1"))
    await store.cron_instants.ask_for(replace(test_rows.row(1), job="n-j"))
    card = await test_board.create(store)
    await store.boards.watch("board:main", "telegram:dm:2")
    run = (card.id, 1, "work", "", "", f"board/{card.id}-1", 1.0)
    await store.write(lambda tx: tx.run(NEW, *run))


async def rows_of(store: Store, home: int) -> dict[str, list[Row]]:
    async def query(tx):
        return {table: await tx.rows(f"SELECT * FROM {table} WHERE home = {home} ORDER BY 1, 2") for table in ROOTS}

    return await store.read(query)


@pytest.fixture(params=["sqlite" if binaries() is None else "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return empty_database(request.param, request, tmp_path)


@pytest.fixture
async def open_another(database_url: str) -> AsyncIterator[OpenAnother]:
    """Stores of one home, on a database that another one has used before; it finds all its rows again."""
    neighbour = await open_store(database_url, clock=FakeClock(now=1.0), home=NEIGHBOUR)
    await settle(neighbour)
    before = await rows_of(neighbour, NEIGHBOUR)
    opened: list[Store] = []

    async def open_one(*, clock: Clock | None = None, timings: Timings | None = None) -> Store:
        opened.append(await open_store(database_url, clock=clock, timings=timings, home=OWN))
        return opened[-1]

    yield open_one
    after = await rows_of(neighbour, NEIGHBOUR)
    for each in (*opened, neighbour):
        await each.close()
    assert after == before


@pytest.fixture
async def store(open_another: OpenAnother) -> Store:
    return await open_another()


@pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)
async def test_every_table_belongs_to_a_home_or_says_why_not(store: Store):
    tables = {row[0] for row in await store.read(lambda tx: tx.rows(TABLES[store.dialect]))}
    theirs = await rows_of(store, NEIGHBOUR)

    assert tables - set(ROOTS) == set(INHERITED) & tables
    assert {table for table in ROOTS if not theirs[table]} == {"home", "worker", "episode"}
    assert not any((await rows_of(store, OWN)).values())
