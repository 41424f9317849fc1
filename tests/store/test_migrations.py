"""Migrations are numbered files, the same numbers for each dialect."""

from pathlib import Path

import apsw
import pytest

from hermes_agent.core.errors import LogBehind
from hermes_agent.store import migrations
from hermes_agent.store.database import open_store
from hermes_agent.store.inbox import Mail
from hermes_agent.store.migrations import newest, steps_after
from hermes_agent.store.postgres.dialect import CREATE
from hermes_agent.store.postgres.driver import link
from hermes_agent.store.sqlite.opening import APPLICATION, STEPS
from tests.store.made import append, mail

SQL = Path(migrations.__file__).parent / "sql"


def test_both_dialects_have_the_same_steps():
    names = [sorted(path.name for path in (SQL / dialect).iterdir()) for dialect in ("sqlite", "postgres")]

    assert names[0] == names[1] != []


def test_no_number_is_left_out():
    """A step that came later under a number below the newest would never reach a database that has the newest."""
    numbers = sorted(int(path.name[:4]) for path in (SQL / "sqlite").iterdir())

    assert numbers == list(range(1, len(numbers) + 1))


def test_steps_come_in_order_and_after_what_is_there(tmp_path: Path):
    for name in ("0002_b.sql", "0001_a.sql", "0010_c.sql", "notes.txt"):
        (tmp_path / name).write_text(name, encoding="utf-8")

    assert newest(tmp_path) == 10
    assert [(step.number, step.sql) for step in steps_after(tmp_path, 1)] == [(2, "0002_b.sql"), (10, "0010_c.sql")]


# What a home had before homes were keys: the last message of the inbox was forgotten, so that its number is free.
BEFORE_HOMES = (
    "INSERT INTO session (id, principal, conversation, surface, title, model, workspace, created, updated, parent, "
    "prefix) VALUES ('s1', 'cli:ann', 'cli:dm:s1', 'cli', 'Tea', '', '', 1, 1, '', '')",
    "INSERT INTO current_session (conversation, session) VALUES ('cli:dm:s1', 's1')",
    "INSERT INTO entry (session, number, run, at, kind, body) VALUES "
    "('s1', 1, 'r', 1, 'notice', '{\"kind\":\"notice\",\"text\":\"one\"}'), "
    "('s1', 2, 'r', 1, 'notice', '{\"kind\":\"notice\",\"text\":\"two\"}')",
    "INSERT INTO inbox (source, source_id, lane, body, state, reason, at, epoch, token) VALUES "
    "('test', '1', 's1', '{}', 'new', '', 1, 0, 't1'), ('test', '2', '', '{}', 'refused', '', 1, 0, 't2')",
    "DELETE FROM inbox WHERE source_id = '2'",
    "INSERT INTO lane (id, queue, pending, queued, ready_at, epoch, stop_epoch, attempts, crashes, error) "
    "VALUES ('s1', 'main', 1, 1, 0, 3, 0, 0, 0, '')",
    "INSERT INTO chat_fact (place, name, value) VALUES ('telegram:1', 'topic', 'tea')",
    "INSERT INTO paired (channel, user_id, name, at) VALUES ('telegram', '1', 'Ann', 1)",
    "UPDATE learning_swept SET version = 7",
    "INSERT INTO cool_down (provider, credential, model, mark, until, reason) VALUES ('p', 'k', '', '', 9e9, 'x')",
)


async def old_database(url: str) -> None:
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.pragma("application_id", APPLICATION)
        for step in steps_after(SQL / "sqlite", 0)[:15]:
            connection.execute(step.sql)
            connection.pragma("user_version", step.number)
        connection.execute(";".join(BEFORE_HOMES))
        connection.close()
        return
    server = await link(url)
    await server.execute(CREATE)
    for step in steps_after(SQL / "postgres", 0)[:15]:
        await server.execute(step.sql)
    await server.execute(";".join((*BEFORE_HOMES, "UPDATE hermes_format SET version = 15")))
    await server.close()


async def test_a_database_from_before_homes_goes_on_as_the_first_one(database_url: str, tmp_path: Path):
    await old_database(database_url)

    store = await open_store(database_url)
    other = await open_store(database_url, home=2)

    found = await store.sessions.current("cli:dm:s1")
    assert found is not None
    assert found.title == "Tea"
    assert await store.inbox.find("test", "1") == Mail(id=1, session="s1", state="new", reason="")
    assert await store.facts.of("telegram:1") == {"topic": "tea"}
    assert [each.name for each in await store.pairing.paired()] == ["Ann"]
    assert [each.credential for each in await store.cool_downs.resting(1.0)] == ["k"]
    assert await store.inbox.accept(mail(2), "s1", "main") == 3
    lease = await store.lanes.claim(["main"])
    assert lease is not None
    assert (lease.epoch, lease.waiting) == (4, (1, 3))
    with pytest.raises(LogBehind, match="entry 4 was next and its log ends at 2"):
        await append(store, lease, 4)
    await append(store, lease, 3)
    assert await other.sessions.list() == await other.pairing.paired() == []
    assert await other.inbox.accept(mail(1), "s9", "main") == 4
    for each in (store, other):
        await each.close()
    if database_url.startswith("sqlite"):
        assert (tmp_path / f"hermes.db.before-{newest(STEPS)}").exists()
