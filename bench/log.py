"""Messages committed one by one, and 100,000 of them searched, each beside what apsw and FTS5 alone take.

A search here ranks sessions and then messages, and brings them from the log; the bare one ranks rows. Beside questions
as people ask them that costs little. Of one rare word FTS5 is done within a fraction of a millisecond,
less than it takes to hand a thread anything and twenty messages back: there the time itself is limited."""

import asyncio
import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import apsw

from bench.figures import Figure
from hermes_agent.core.events import Entry, MessageTaken
from hermes_agent.core.messages import Text, said
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.leases import Lease
from hermes_agent.store.sessions import Session

MESSAGES = 100_000
SESSIONS = 100
BATCH = 100
ALONE = 5_000
"""Messages that are committed one by one."""
WORDS_EACH = 40
VOCABULARY = 5_000
REPEATS = 100
ASKED = 200
LIMIT = 20
MILLISECONDS = 1000.0


def texts() -> list[str]:
    """Messages of words that are as unevenly common as those of a language."""
    random = Random(7)
    words = [f"word{number}" for number in range(VOCABULARY)]
    weights = [1 / (rank + 10) for rank in range(VOCABULARY)]
    return [" ".join(random.choices(words, weights, k=WORDS_EACH)) for _ in range(MESSAGES)]


Batch = tuple[str, list[Entry]]


def batches(spoken: list[str]) -> list[Batch]:
    """Runs of entries of one session, as they would be committed."""
    per_session = MESSAGES // SESSIONS
    made = []
    for first in range(0, MESSAGES, BATCH):
        start = first % per_session
        entries = [
            Entry(number=start + offset + 1, run="r", at=0.0, event=MessageTaken(message=said(spoken[first + offset])))
            for offset in range(BATCH)
        ]
        made.append((f"s{first // per_session}", entries))
    return made


async def hold_all(store: Store) -> dict[str, Lease]:
    """New sessions and their leases."""
    leases = {}
    for number in range(SESSIONS):
        record = Session(
            id=f"s{number}", principal="bench:1", conversation="bench", surface="bench", created=0.0, updated=0.0
        )
        await store.write(lambda tx, record=record: store.sessions.create(tx, record))
        lease = await store.lanes.hold(record.id, "bench")
        assert lease is not None
        leases[record.id] = lease
    return leases


def bare_log(path: Path) -> apsw.Connection:
    """A table of messages, with apsw alone."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, session TEXT NOT NULL, body TEXT NOT NULL)")
    return connection


async def write_both(store: Store, path: Path, work: list[Batch]) -> list[Figure]:
    """One message a commit, in turns, so that a busy disk slows both; then what is left, for the searches."""
    leases, connection = await hold_all(store), bare_log(path)
    ours, bare = [], []
    alone = ALONE // BATCH
    for session, entries in work[:alone]:
        lease = leases[session]
        for entry in entries:
            began = time.perf_counter()
            await store.write(lambda tx, lease=lease, entry=entry: store.history.append(tx, lease, [entry]))
            between = time.perf_counter()
            row = json.dumps({"role": "user", "text": spoken_in(entry)})
            connection.execute("INSERT INTO entry (session, body) VALUES (?, ?)", (session, row))
            bare.append(time.perf_counter() - between)
            ours.append(between - began)
    connection.close()
    for session, entries in work[alone:]:
        lease = leases[session]
        await store.write(lambda tx, lease=lease, entries=entries: store.history.append(tx, lease, entries))
    return [
        Figure(
            name=f"a message committed, {name}",
            value=at(ours) * MILLISECONDS,
            floor=at(bare) * MILLISECONDS,
            unit="ms",
            limit=limit,
        )
        for name, at, limit in (("median", statistics.median, 2.0), ("999 of 1,000 within", slowest, None))
    ]


def slowest(taken: list[float]) -> float:
    """Within what 999 of 1,000 were done."""
    return sorted(taken)[int(len(taken) * 0.999)]


def spoken_in(entry: Entry) -> str:
    assert isinstance(entry.event, MessageTaken)
    return "".join(part.text for part in entry.event.message.parts if isinstance(part, Text))


def bare_index(path: Path, spoken: list[str]) -> apsw.Connection:
    """FTS5 over the same texts, as it is by itself."""
    connection = apsw.Connection(str(path))
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    with connection:
        connection.executemany("INSERT INTO words (text) VALUES (?)", ((text,) for text in spoken))
    return connection


def search_bare(connection: apsw.Connection, match: str) -> list[tuple[object, ...]]:
    """The best messages."""
    sql = "SELECT rowid, text FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"
    return list(connection.execute(sql, (match, LIMIT)))


async def read_both(store: Store) -> Figure:
    """A session by its key, which is asked in place (decision 25), beside a thread that is woken and waited for."""
    ours, thread = [], []
    for number in range(REPEATS):
        began = time.perf_counter()
        await store.sessions.get(f"s{number % SESSIONS}")
        between = time.perf_counter()
        await asyncio.to_thread(int)
        thread.append(time.perf_counter() - between)
        ours.append(between - began)
    value, floor = (statistics.median(each) * MILLISECONDS for each in (ours, thread))
    return Figure(name="a session by its key, by a thread woken for nothing", value=value, floor=floor, unit="ms")


def questions() -> list[str]:
    """What could be asked: three to eight words, in the proportions in which they are said."""
    random = Random(11)
    words = [word for text in texts()[:ASKED] for word in text.split()]
    return [" ".join(random.sample(words, random.randint(3, 8))) for _ in range(ASKED)]


async def search_both(store: Store, connection: apsw.Connection, name: str, asked: list[str]) -> Figure:
    """Each search and the bare query for any of the same words in turns; the mean of the searches, in milliseconds."""
    ours = bare = 0.0
    for query in asked:
        match = " OR ".join(query.split())
        began = time.perf_counter()
        assert await store.search.search(query, limit=LIMIT)
        between = time.perf_counter()
        search_bare(connection, match)
        bare += time.perf_counter() - between
        ours += between - began
    each = MILLISECONDS / len(asked)
    return Figure(name=f"search: {name}", value=ours * each, floor=bare * each, unit="ms", limit=2.0)


async def measure_in(folder: Path) -> list[Figure]:
    spoken = texts()
    store = await open_store(folder / "hermes.db")
    found = [*await write_both(store, folder / "bare.db", batches(spoken)), await read_both(store)]
    began = time.perf_counter()
    await store.search.catch_up()
    indexed = time.perf_counter() - began
    began = time.perf_counter()
    connection = bare_index(folder / "fts.db", spoken)
    floor = time.perf_counter() - began
    found.append(Figure(name="their index made", value=indexed, floor=floor, unit="s", limit=6.0))
    found.append(await search_both(store, connection, "questions of 3 to 8 words", questions()))
    found.append(await search_both(store, connection, "two common words", ["word1 word2"] * REPEATS))
    rare = await search_both(store, connection, "a rare word", [f"word{4_000 + each}" for each in range(REPEATS)])
    found += [replace(rare, limit=None), replace(rare, name="search: a rare word, in all", floor=None, limit=10.0)]
    connection.close()
    await store.close()
    return found


def measure() -> list[Figure]:
    """On SQLite, in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(measure_in(Path(folder)))
