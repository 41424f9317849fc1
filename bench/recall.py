"""Search: whether it finds again what was said (LoCoMo, `--data`), and how quickly among a million messages."""

import asyncio
import json
import re
import statistics
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import apsw

from bench.data import dataset
from bench.figures import Figure
from hermes_agent.core.events import Entry, MessageTaken
from hermes_agent.core.messages import said
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.search import Scope
from hermes_agent.store.sessions import Session
from hermes_agent.store.transaction import written

UNANSWERABLE = 5
MESSAGES = 1_000_000
PER_SESSION = 50
WORDS_EACH = 25
VOCABULARY = 50_000
QUERIES = 300
ANN = "bench:ann"
PERCENT = 100.0
MILLISECONDS = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question and the sessions that its answer was said in."""

    question: str
    sessions: frozenset[str]


async def keep(store: Store, name: str, at: float, texts: Iterable[str]) -> None:
    """A session in which these texts were said."""
    record = Session(id=name, principal=ANN, conversation="bench:dm", surface="bench", created=at, updated=at)
    await store.write(lambda tx: store.sessions.create(tx, record))
    lease = await store.lanes.hold(name, "bench")
    assert lease is not None
    entries = [
        Entry(number=number, run="r", at=at + number, event=MessageTaken(message=said(text)))
        for number, text in enumerate(texts, 1)
    ]
    await store.write(lambda tx: store.history.append(tx, lease, entries))
    await store.lanes.release(lease)


async def conversation(store: Store, whole: dict[str, Any]) -> list[Asked]:
    """Keep the sessions of one LoCoMo conversation; its questions."""
    talk = whole["conversation"]
    for key, turns in talk.items():
        if re.fullmatch(r"session_\d+", key):
            when = datetime.strptime(talk[f"{key}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            await keep(store, key, when.timestamp(), (turn["text"] for turn in turns))
    asked = []
    for each in whole["qa"]:
        told = {f"session_{number}" for place in each["evidence"] for number in re.findall(r"D(\d+):", place)}
        if told and each["category"] != UNANSWERABLE:
            asked.append(Asked(question=each["question"], sessions=frozenset(told)))
    return asked


async def ranks(folder: Path, whole: dict[str, Any]) -> list[int]:
    """For each question of a conversation the place of the first right session, 0 where none is among the first five;
    -1 where nothing at all was found."""
    store = await open_store(folder / "hermes.db")
    found = []
    for asked in await conversation(store, whole):
        answers = await store.search.discover(asked.question, Scope(principal=ANN), limit=5)
        right = (place for place, answer in enumerate(answers, 1) if answer.session in asked.sessions)
        found.append(next(right, 0) if answers else -1)
    await store.close()
    return found


def talks(source: Path) -> list[tuple[str, dict[str, Any]]]:
    """The conversations of the data set, by name."""
    return [(path.stem, json.loads(path.read_bytes())) for path in sorted(source.glob("conv-*.json"))]


async def measure_locomo(folder: Path, source: Path) -> list[Figure]:
    """Any of the right sessions among the first five, the first, and questions that got no answer at all."""
    every = [place for name, whole in talks(source) for place in await ranks(folder / name, whole)]
    missed = PERCENT * sum(place <= 0 for place in every) / len(every)
    not_first = PERCENT * sum(place != 1 for place in every) / len(every)
    empty = sum(place < 0 for place in every)
    return [
        Figure(name=f"LoCoMo, {len(every)} questions: not in five", value=missed, unit="%", limit=7.0),
        Figure(name="LoCoMo: not first", value=not_first, unit="%", limit=29.0),
        Figure(name="LoCoMo: empty answers", value=empty, unit="questions", limit=0.0),
    ]


class Talk:
    """Made-up messages: words as unevenly common as in a language, each session with a few words of its own."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        letters, ends = "bcdfghjklmnprstvwz", "aeiou"
        syllables = [first + second for first in letters for second in ends]
        names: dict[str, None] = {}
        while len(names) < VOCABULARY:
            names["".join(self._random.choices(syllables, k=self._random.choice((1, 2, 2, 3, 3, 4))))] = None
        self.words = list(names)
        total, self._weights = 0.0, []
        for rank in range(VOCABULARY):
            total += 1 / (rank + 2.7)
            self._weights.append(total)

    def session(self) -> list[str]:
        """What is said in one session."""
        words = self._random.choices(self.words, cum_weights=self._weights, k=PER_SESSION * WORDS_EACH)
        own = self._random.sample(self.words, 12)
        for place in self._random.sample(range(len(words)), len(words) // 12):
            words[place] = self._random.choice(own)
        return [" ".join(words[first : first + WORDS_EACH]) for first in range(0, len(words), WORDS_EACH)]

    def question(self) -> str:
        """Three to eight words as they are said, in the proportions in which they are said."""
        number = self._random.randint(3, 8)
        return " ".join(self._random.choices(self.words, cum_weights=self._weights, k=number))


def fill(path: Path, messages: int) -> int:
    """Write so many messages into a store's file, without its own care for durability; the bytes of their texts."""
    talk, size = Talk(5), 0
    connection = apsw.Connection(str(path))
    connection.pragma("synchronous", "off")
    for number in range(messages // PER_SESSION):
        name, at = f"s{number}", 1.6e9 + number * 3600.0
        texts = talk.session()
        size += sum(map(len, texts))
        rows = [
            (name, place, "r", at + place, "message_taken", written(MessageTaken(message=said(text))))
            for place, text in enumerate(texts, 1)
        ]
        with connection:
            connection.execute(
                "INSERT INTO session (id, principal, conversation, surface, title, model, workspace, created, "
                "updated, parent, prefix) VALUES (?, ?, 'bench:dm', 'bench', '', '', '', ?, ?, '', '')",
                (name, ANN, at, at),
            )
            connection.executemany(
                "INSERT INTO entry (session, number, run, at, kind, body) VALUES (?, ?, ?, ?, ?, ?)", rows
            )
    connection.close()
    return size


def taken(folder: Path) -> int:
    """The bytes of the index."""
    return sum(each.stat().st_size for each in folder.glob("index.db*"))


async def measure_size(folder: Path, messages: int) -> list[Figure]:
    """How long the index takes to make, how large it gets, and how long a search takes."""
    path = folder / "hermes.db"
    await (await open_store(path)).close()
    size = fill(path, messages)
    store = await open_store(path)
    began = time.perf_counter()
    await store.search.catch_up()
    indexed = time.perf_counter() - began
    talk, seconds = Talk(5), []
    for _ in range(QUERIES):
        query = talk.question()
        began = time.perf_counter()
        assert await store.search.discover(query, Scope(principal=ANN))
        seconds.append(time.perf_counter() - began)
    await store.close()
    growth = taken(folder)
    slow = statistics.quantiles(seconds, n=20)[-1]
    name = f"{messages:,} messages"
    return [
        Figure(name=f"{name}: index made", value=indexed, unit="s"),
        Figure(name=f"{name}: index by text", value=growth / 1e6, floor=size / 1e6, unit="MB", limit=1.5),
        Figure(name=f"{name}: search, median", value=statistics.median(seconds) * MILLISECONDS, unit="ms"),
        Figure(name=f"{name}: search, 95 of 100", value=slow * MILLISECONDS, unit="ms", limit=50.0),
    ]


def measure(messages: int = MESSAGES) -> list[Figure]:
    """On SQLite, in a temporary folder; without LoCoMo where it is not here."""
    source = dataset("locomo")
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure_locomo(Path(folder), source)) if source else []
        return found + asyncio.run(measure_size(Path(folder), messages))
