"""Search index of skills: a disposable SQLite file with FTS5, filled from the skill folders."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import apsw
import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.late import late
from hermes_agent.store.sqlite.disposable import Disposable, Plan

WORDS = """
a about all also am an and any are as at be been but by can could did do does each either for from get give
had has have he help her here him his how i if in into is it its just know let like make may me might more
most my need no not now of on only or our out please same she should so some such than that the their them
then there these they this those to too up us use used using very want was way we were what when where which
who why will with would yes you your
"""
STOP_WORDS = frozenset(WORDS.split())
"""Words that say nothing about what a task is for."""
SPACED = "hermes_agent.store.finding.terms:spaced"
FORMAT = 2
TOKENIZER = ("porter", "unicode61")
SCHEMA = """
CREATE TABLE skill (
    id INTEGER PRIMARY KEY, folder TEXT NOT NULL UNIQUE, root TEXT NOT NULL, name TEXT NOT NULL, family TEXT NOT NULL,
    stamp TEXT NOT NULL, problem TEXT NOT NULL, card BLOB NOT NULL
);
CREATE INDEX skill_name ON skill (name, root);
CREATE INDEX skill_root ON skill (root, folder, stamp);
CREATE INDEX skill_family ON skill (family, name);
CREATE TABLE name_word (
    stem TEXT NOT NULL, skill INTEGER NOT NULL, parts INTEGER NOT NULL, PRIMARY KEY (stem, skill)
) WITHOUT ROWID;
CREATE INDEX name_word_skill ON name_word (skill);
CREATE VIRTUAL TABLE head USING fts5(name, about, content='', contentless_delete=1, tokenize="porter unicode61");
CREATE VIRTUAL TABLE body USING fts5(text, content='', contentless_delete=1, tokenize="porter unicode61");
CREATE VIRTUAL TABLE head_word USING fts5vocab(head, 'row');
CREATE VIRTUAL TABLE body_word USING fts5vocab(body, 'row');
"""
# What decides the order, measured over public tasks (python -m bench skills): how many of a task's rarest words are
# looked for, what a word is worth that is said again, what a name is worth that is said as a whole.
RAREST = 20
AGAIN = 0.5
NAME_SAID = 2.0
BODY = 1.0  # against a word of name or description
SHORTLIST = 60
# A word that more than this share of the skills know says nothing about a task.
COMMON = 30
FEW = 8
LONGEST_TASK = 8_000
# A task of so many characters is looked for among so many skills in well under a millisecond.
BRIEF_TASK, BRIEF_SKILLS = 500, 200
COUNTED = 20_000  # words whose counts are remembered
LONGEST_BODY = 100_000
SAID_WHOLE = (
    "SELECT skill, sum(value) FROM json_each(?) JOIN name_word ON stem = key GROUP BY skill HAVING count(*) = parts"
)
WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """An indexed skill. `root` is the folder that it was found under, `stamp` the state of its file, `card` its
    encoded header for the reader, `problem` why it cannot be used (empty: it can)."""

    folder: str
    root: str
    name: str
    stamp: str
    family: str = ""
    about: str = ""
    body: str = ""
    card: bytes = b""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A search result: a row of the index without its words."""

    folder: str
    root: str
    name: str
    card: bytes
    problem: str


class SkillsIndex:
    """Search index of one home. `roots` are in order of precedence for skills of the same name.

    A damaged file is deleted and rebuilt; one that cannot be written raises `StoreError`.
    """

    def __init__(self, path: Path) -> None:
        plan = Plan(name="index of skills", path=path, format=FORMAT, schema=SCHEMA, opened=self._learn_stems)
        self._file = Disposable(plan)
        self._stems: Callable[[str], list[str]] = str.split
        # How many skills know a stem ("": how many there are), as of one state of the file.
        self._counts: dict[str, int] = {}
        self._state: object = None

    async def stamps(self, roots: Sequence[str]) -> dict[str, dict[str, str]]:
        """Folder -> stamp of every known skill, for each root."""
        sql = "SELECT folder, stamp FROM skill WHERE root = ?"
        return await self._file.work(lambda db: {root: dict(db.execute(sql, (root,))) for root in roots})

    async def update(self, put: Sequence[Indexed], gone: Iterable[str] = ()) -> None:
        """Add or replace skills, and remove those of the folders `gone`."""
        folders = [*gone, *(each.folder for each in put)]

        def work(db: apsw.Connection) -> None:
            self._counts.clear()
            with db:
                for folder in folders:
                    _forget(db, folder)
                for each in put:
                    _add(db, each, self._stems)

        await self._file.work(work)

    async def named(self, name: str, roots: Sequence[str]) -> list[Listed]:
        """Every skill of this name, by precedence."""
        return await self._file.work(lambda db: _ranked(_rows(db, "name = ?", (name,), roots), roots))

    async def page(self, roots: Sequence[str], *, family: str = "", after: str = "", limit: int = 50) -> list[Listed]:
        """Skills by name, without shadowed ones; `after` is the last name of the previous page."""
        where, values = "name > ?", [after]
        if family:
            where, values = f"{where} AND family = ?", [*values, family]

        def work(db: apsw.Connection) -> list[Listed]:
            rows = _rows(db, f"{where} AND {_wins(roots)}", values, roots, f"ORDER BY name LIMIT {int(limit)}")
            return _ranked(rows, roots, by_name=True)

        return await self._file.work(work)

    async def problems(self, roots: Sequence[str]) -> list[Listed]:
        """The folders with an unusable skill."""
        brief = self._counts.get("", BRIEF_SKILLS + 1) <= BRIEF_SKILLS
        return await self._file.work(lambda db: _rows(db, "problem <> ''", (), roots, "ORDER BY folder"), brief=brief)

    async def families(self, roots: Sequence[str], plain: bytes) -> list[tuple[str, bytes, int]]:
        """Each family with the number of its skills whose card contains `plain`; every other skill alone, with its
        card."""
        sql = (
            "SELECT family, CASE WHEN instr(card, ?) THEN x'' ELSE card END AS own, count(DISTINCT name) FROM skill "
            f"WHERE problem = '' AND root IN ({_marks(roots)}) GROUP BY family, own"
        )
        return await self._file.work(lambda db: list(db.execute(sql, (plain, *roots))))

    async def search(self, task: str, roots: Sequence[str], limit: int = 5) -> list[Listed]:
        """The skills that fit a task in anybody's words, the best first; none where nothing fits well."""
        brief = len(task) <= BRIEF_TASK and self._counts.get("", BRIEF_SKILLS + 1) <= BRIEF_SKILLS
        return await self._file.work(lambda db: self._search(db, task, roots, limit), brief=brief)

    async def close(self) -> None:
        """Close the file."""
        await self._file.close()

    # In the index's thread

    def _learn_stems(self, connection: apsw.Connection) -> None:
        self._counts.clear()
        tokenizer = connection.fts5_tokenizer(TOKENIZER[0], list(TOKENIZER[1:]))

        def stems(text: str) -> list[str]:
            kind = apsw.FTS5_TOKENIZE_QUERY
            found = tokenizer(text.encode(), kind, None, include_offsets=False, include_colocated=False)
            return [str(stem) for stem in found]

        self._stems = lru_cache(4096)(stems)

    def _search(self, db: apsw.Connection, task: str, roots: Sequence[str], limit: int) -> list[Listed]:
        weights = self._weights(db, task)
        if not weights:
            return []
        rarest = sorted(weights, key=lambda word: -weights[word])
        scores: dict[int, float] = defaultdict(float)
        told: dict[int, float] = defaultdict(float)
        match = _any_of(rarest[:RAREST])
        best = "SELECT rowid, bm25({0}) AS score FROM {0} WHERE {0} MATCH ? ORDER BY score LIMIT ?"
        for row, score in db.execute(best.format("head"), (match, SHORTLIST)):
            scores[row] -= score
        for row, score in db.execute(best.format("body"), (match, SHORTLIST)):
            scores[row] -= BODY * score
            told[row] -= score
        named = self._names_said(db, weights)
        for row, worth in named.items():
            scores[row] += NAME_SAID * worth
        enough = sum(weights[word] for word in rarest[:2]) / 2
        found: list[Listed] = []
        shared = _Shared(db, rarest[:RAREST])
        for row in sorted(scores, key=lambda row: -scores[row])[: limit * 4]:
            fits = row in named or told[row] >= enough or shared(row)
            if fits and (listed := _row(db, row, roots)) is not None:
                found.append(listed)
            if len(found) == limit:
                break
        return found

    def _weights(self, db: apsw.Connection, task: str) -> dict[str, float]:
        """What each telling word of a task is worth: much where few skills know it, more where it is said again.
        Of words with one stem the first stands for all."""
        self._look_for_changes(db)
        everything = self._count(db, "")
        weights: dict[str, float] = {}
        seen: set[str] = set()
        said_words = Counter(filter(_tells, WORD.findall(_spaced(task[:LONGEST_TASK].lower()))))
        for word, said in said_words.items():
            stem = (self._stems(word) or [word])[0]
            if stem in seen:
                continue
            seen.add(stem)
            known = self._count(db, stem)
            if 0 < known <= max(everything / COMMON, FEW):
                rare = math.log(1 + (everything - known + 0.5) / (known + 0.5))
                weights[word] = rare * (1 + AGAIN * math.log(said))
        return weights

    def _look_for_changes(self, db: apsw.Connection) -> None:
        """Forget the counts where the file changed: counting the words of a long task is a third of a search."""
        state = db.pragma("data_version")
        if state != self._state or len(self._counts) > COUNTED:
            self._counts.clear()
            self._state = state

    def _count(self, db: apsw.Connection, stem: str) -> int:
        """How many skills know a stem, in name and description, else in the body."""
        if stem not in self._counts:
            self._counts[stem] = _counted(db, stem)
        return self._counts[stem]

    def _names_said(self, db: apsw.Connection, weights: dict[str, float]) -> dict[int, float]:
        """The skills whose whole name is said, and what its words are worth."""
        worth = {self._stems(word)[0]: weight for word, weight in weights.items()}
        rows = db.execute(SAID_WHOLE, (msgspec.json.encode(worth).decode(),))
        return {int(row): float(said) for row, said in rows}


class _Shared:
    """Whether name and description of a skill contain two of these words, or the only one. Each word is looked up
    once for all skills: a telling word occurs in few."""

    def __init__(self, db: apsw.Connection, words: list[str]) -> None:
        self._db, self._words = db, words
        self._holders: list[frozenset[int]] = []

    def __call__(self, row: int) -> bool:
        wanted, held = min(2, len(self._words)), 0
        for number, word in enumerate(self._words):
            if number == len(self._holders):
                rows = self._db.execute("SELECT rowid FROM head WHERE head MATCH ?", (f'"{word}"',))
                self._holders.append(frozenset(int(each) for (each,) in rows))
            held += row in self._holders[number]
            if held == wanted:
                return True
        return False


def _forget(db: apsw.Connection, folder: str) -> None:
    row = db.execute("DELETE FROM skill WHERE folder = ? RETURNING id", (folder,)).get
    if row is not None:
        db.execute("DELETE FROM name_word WHERE skill = ?", (row,))
        db.execute("DELETE FROM head WHERE rowid = ?", (row,))
        db.execute("DELETE FROM body WHERE rowid = ?", (row,))


def _counted(db: apsw.Connection, stem: str) -> int:
    if not stem:
        return int(db.execute("SELECT count(*) FROM skill WHERE problem = ''").get)
    found = db.execute("SELECT doc FROM head_word WHERE term = ?", (stem,)).get
    return int(found or db.execute("SELECT doc FROM body_word WHERE term = ?", (stem,)).get or 0)


def _add(db: apsw.Connection, skill: Indexed, stems: Callable[[str], list[str]]) -> None:
    row = db.execute(
        "INSERT INTO skill (folder, root, name, family, stamp, problem, card) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "RETURNING id",
        (skill.folder, skill.root, skill.name, skill.family, skill.stamp, skill.problem, skill.card),
    ).get
    if not skill.problem:
        about = _spaced(skill.about)
        db.execute("INSERT INTO head (rowid, name, about) VALUES (?, ?, ?)", (row, _spaced(skill.name), about))
        db.execute("INSERT INTO body (rowid, text) VALUES (?, ?)", (row, _spaced(skill.body[:LONGEST_BODY])))
        parts = set(stems(_spaced(skill.name)))
        db.executemany("INSERT INTO name_word VALUES (?, ?, ?)", [(part, row, len(parts)) for part in parts])


FIELDS = "folder, root, name, card, problem"


def _rows(
    db: apsw.Connection, where: str, values: Sequence[str], roots: Sequence[str], order: str = ""
) -> list[Listed]:
    sql = f"SELECT {FIELDS} FROM skill WHERE {where} AND root IN ({_marks(roots)}) {order}"
    return [_listed(row) for row in db.execute(sql, (*values, *roots))]


def _row(db: apsw.Connection, row: int, roots: Sequence[str]) -> Listed | None:
    """The row, where no other skill of its name wins over it."""
    found = _rows(db, f"id = {int(row)} AND {_wins(roots)}", (), roots)
    return found[0] if found else None


def _listed(row: tuple[apsw.SQLiteValue, ...]) -> Listed:
    folder, root, name, card, problem = row
    assert isinstance(card, bytes)
    return Listed(folder=str(folder), root=str(root), name=str(name), card=card, problem=str(problem))


def _ranked(rows: list[Listed], roots: Sequence[str], *, by_name: bool = False) -> list[Listed]:
    place = {root: number for number, root in enumerate(roots)}
    return sorted(rows, key=lambda row: (row.name if by_name else "", place[row.root], row.folder))


def _wins(roots: Sequence[str]) -> str:
    """The condition that no usable skill of the same name stands under an earlier root, or earlier under the same."""
    rank = " ".join(f"WHEN {_quoted(root)} THEN {number}" for number, root in enumerate(roots))
    return (
        "problem = '' AND NOT EXISTS (SELECT 1 FROM skill AS o WHERE o.name = skill.name AND o.problem = '' "
        f"AND (CASE o.root {rank} ELSE 999 END, o.folder) < (CASE skill.root {rank} ELSE 999 END, skill.folder))"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _marks(roots: Sequence[str]) -> str:
    return ", ".join("?" * len(roots))


def _any_of(words: Sequence[str]) -> str:
    return " OR ".join(f'"{word}"' for word in words)


def _tells(word: str) -> bool:
    return word not in STOP_WORDS and (len(word) > 1 or not word.isascii())


def _spaced(text: str) -> str:
    """As `spaced`, which is loaded where a text needs it."""
    return text if text.isascii() else str(late(SPACED)(text))
