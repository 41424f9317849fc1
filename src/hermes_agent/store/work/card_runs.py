"""Table of the processes of cards: claims under caps, adoption, progress, and their end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import LostLease
from hermes_agent.store.transaction import Columns, Engine, Keyed, Many, TimedTables, Transaction, Write, storable
from hermes_agent.store.work.board import Boards, Decide, card_of, pair
from hermes_agent.store.work.cards import COMMAND, Card, CardRun, Change, Ending, RunKind
from hermes_agent.store.workers import Workers

FIELDS = (
    "card, epoch, kind, profile, host, exec_id, session, started, seen, adopted, note, reported, ended, outcome, "
    "exit_code"
)
OPEN = (
    f"SELECT card.body, {', '.join(f'card_run.{each}' for each in FIELDS.split(', '))} FROM card_run JOIN card "
    "ON card.id = card_run.card WHERE card_run.home = $home AND card_run.ended IS NULL ORDER BY card_run.started"
)
OVERDUE = "SELECT id FROM card WHERE home = $home AND status = 'blocked' AND ready_at > 0 AND ready_at <= $1"
# A folder that somebody works in, and a card whose earlier process is not known to be gone, wait.
FREE = (
    "NOT EXISTS (SELECT 1 FROM card_run WHERE card_run.card = card.id AND card_run.ended IS NULL) "
    "AND (card.place = '' OR NOT EXISTS (SELECT 1 FROM card_run JOIN card AS other ON other.id = card_run.card "
    "WHERE card_run.ended IS NULL AND other.place = card.place))"
)
WAITING = (
    "SELECT id, version FROM card WHERE home = $home AND due = 1 AND ready_at <= $1 AND (host = '' OR host = $2) "
    f"AND {FREE} ORDER BY priority, created, id LIMIT 100"
)
TRIAGE = "SELECT id, version FROM card WHERE home = $home AND status = 'triage' AND owner IS NULL AND ready_at <= $1"
NEXT = (
    "SELECT min(at) FROM (SELECT min(ready_at) AS at FROM card WHERE home = $home AND ready_at > 0 "
    "AND (ready_at > $4 OR status = 'blocked') UNION ALL "
    "SELECT min(seen) + $1 FROM card_run WHERE home = $home AND ended IS NULL AND reported = 0 UNION ALL "
    "SELECT min(ended) + $2 FROM card WHERE home = $home AND cleaned = 0 AND status = 'archived' AND host = $3 "
    "AND NOT EXISTS (SELECT 1 FROM card_run WHERE card_run.card = card.id AND card_run.ended IS NULL)) "
    "AS moments"
)
LAST_SESSION = (
    "SELECT session FROM card_run WHERE card = $1 AND profile = $2 AND kind = 'work' AND session <> '' "
    "ORDER BY epoch DESC LIMIT 1"
)
RECENT = (
    "SELECT profile, outcome FROM card_run WHERE home = $home AND started >= $1 AND ended IS NOT NULL ORDER BY ended"
)
run_of = Columns(CardRun, FIELDS)


# All dispatchers of a home take their turns, so that the caps hold.
TURN = "SELECT name FROM board WHERE home = $home ORDER BY name FOR NO KEY UPDATE"
OPEN_BY_PROFILE = (
    "SELECT profile, host, count(*) FROM card_run WHERE home = $home AND ended IS NULL GROUP BY profile, host"
)
DUE = (
    "SELECT body FROM card WHERE home = $home AND due = 1 AND ready_at <= $1 AND (host = '' OR host = $2) "
    f"AND {FREE} ORDER BY priority, created, id LIMIT $3"
)
UNDIVIDED = (
    "SELECT body FROM card WHERE home = $home AND status = 'triage' AND owner IS NULL AND ready_at <= $1 "
    f"AND {FREE} ORDER BY priority, created, id LIMIT $2"
)
NEW = (
    "INSERT INTO card_run (card, epoch, home, kind, profile, host, exec_id, session, started, seen, adopted, note, "
    "reported, ended, outcome, exit_code) VALUES ($1, $2, $home, $3, $4, $5, $6, '', $7, $7, 0, '', 0, NULL, '', NULL)"
)
ADOPTED = "UPDATE card_run SET adopted = 1 WHERE card = $1 AND epoch = $2 AND ended IS NULL"
# Whoever holds a card has the epoch after that of its run.
SEEN = (
    "UPDATE card_run SET seen = $3, reported = 0, note = CASE WHEN CAST($4 AS TEXT) = '' THEN note ELSE $4 END "
    "WHERE card = $1 AND epoch = $2 - 1 AND ended IS NULL AND EXISTS "
    "(SELECT 1 FROM card WHERE id = $1 AND owner = $5 AND epoch = $2)"
)
REPORTED = "UPDATE card_run SET reported = 1 WHERE card = $1 AND epoch = $2 AND reported = 0 AND seen <= $3"
OVER = (
    "UPDATE card_run SET ended = $3, exit_code = $4, outcome = CASE WHEN outcome = '' THEN $5 ELSE outcome END "
    "WHERE card = $1 AND epoch = $2 AND ended IS NULL"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """How many processes of cards may be open: on a machine, and of one profile (0: any number). `paused` profiles
    start none. `divides`: how many cards in triage may be claimed to be divided."""

    most: int = 4
    per_profile: int = 0
    paused: frozenset[str] = frozenset()
    divides: int = 0


GROUP = ("board", "checks")
"""The first part of the exec ids of processes of `hermes`, and of checks."""
Claim = Callable[[Card], tuple[Change, RunKind, str]]
"""What a claimed card becomes, for what, and the profile that works on it."""


class CardRuns(TimedTables):
    """Processes of cards. A run is named by the epoch of its claim; its process holds the card under the next one."""

    def __init__(self, engine: Engine, clock: Clock, workers: Workers, cards: Boards) -> None:
        super().__init__(engine, clock)
        self._workers, self._cards = workers, cards

    async def last_session(self, card: str, profile: str) -> str:
        """The session in which that profile worked on the card before; empty where it never did."""
        row = await self._engine.read(lambda tx: tx.row(LAST_SESSION, card, profile), brief=True)
        return "" if row is None else str(row[0])

    open = Many[[], tuple[CardRun, Card]](OPEN, lambda row: (run_of(row[1:]), card_of(row)))
    """The runs whose process may be alive, oldest first, with their cards."""
    overdue = Many[[float], str](OVERDUE)
    """Blocked cards whose passing trouble has passed by that time."""
    of = Many[[str], CardRun](f"SELECT {FIELDS} FROM card_run WHERE card = $1 ORDER BY epoch", run_of)
    """All runs of a card."""
    alive = Keyed[[], str]("SELECT id, machine FROM worker", brief=True)
    """The workers of this database that are registered, each with its machine."""
    recent = Many[[float], tuple[str, str]](RECENT, pair)
    """Profile and outcome of the runs that began since then and have ended, by their ends."""

    async def waiting(self, host: str, *, triage: bool = False) -> frozenset[tuple[str, int]]:
        """Cards with their version that a dispatcher of this machine could claim now, were there room."""
        now = self._clock.now()
        rows = await self._engine.read(lambda tx: tx.rows(WAITING, now, host), brief=True)
        if triage:
            rows += await self._engine.read(lambda tx: tx.rows(TRIAGE, now), brief=True)
        return frozenset((row[0], int(row[1])) for row in rows)

    async def next_due(self, host: str, stale: float, keep: float) -> float | None:
        """When time alone gives a dispatcher something to do next; None: never."""
        row = await self._engine.read(lambda tx: tx.row(NEXT, stale, keep, host, self._clock.now()), brief=True)
        return None if row is None or row[0] is None else float(row[0])

    async def claim(self, host: str, caps: Caps, decide: Claim, most: int = 50) -> list[tuple[Card, CardRun]]:
        """Claim up to `most` due cards for this worker, the most urgent first, each with its open run. A commit that is
        cancelled may leave a run without a process; the next look ends it."""
        await self._workers.freshen()
        now = self._clock.now()

        async def claim(tx: Transaction) -> list[tuple[Card, CardRun]]:
            await tx.rows(TURN)
            counts = await tx.rows(OPEN_BY_PROFILE)
            here = sum(int(row[2]) for row in counts if row[1] == host)
            of = Counter({row[0]: int(row[2]) for row in counts})
            rows = await tx.rows(DUE, now, host, 4 * most)
            rows += await tx.rows(UNDIVIDED, now, caps.divides) if caps.divides else []
            taken: list[tuple[Change, RunKind, str]] = []
            places: set[str] = set()
            for card in map(card_of, rows):
                change, kind, profile = decide(card)
                full = caps.per_profile and of[profile] >= caps.per_profile
                if here + len(taken) >= caps.most or len(taken) >= most:
                    break
                if full or profile in caps.paused or card.folder in places:
                    continue
                of[profile] += 1
                places |= {card.folder} - {""}
                taken.append((change, kind, profile))
            cards = await self._cards.put_all(tx, [change for change, _, _ in taken])
            runs = [
                (card.id, card.epoch, kind.value, who, host, f"{GROUP[who == COMMAND]}/{card.id}-{card.epoch}", now)
                for card, (_, kind, who) in zip(cards, taken, strict=True)
            ]
            await tx.many(NEW, runs)
            return [
                (card, run_of((*run[:6], "", now, now, 0, "", 0, None, "", None)))
                for card, run in zip(cards, runs, strict=True)
            ]

        return await self._engine.write(claim)

    async def adopt(self, card: str, epoch: int, decide: Decide) -> Card:
        """Take a claimed card over in its own process. Raises `LostLease` where that claim is gone."""
        await self._workers.freshen()

        def checked(found: Card) -> Change | None:
            if found.epoch != epoch or not found.owner:
                raise LostLease(f"{card} was claimed anew, or moved: this process does nothing.")
            return decide(found)

        async def note(tx: Transaction, _after: Card) -> None:
            if not await tx.run(ADOPTED, card, epoch):
                raise LostLease(f"The run of {card} is over: this process does nothing.")

        return await self._cards.change(card, checked, _never, note)

    async def progress(self, card: str, epoch: int, note: str = "") -> None:
        """Note a sign of progress of the holder. Raises `LostLease`."""
        said, now = storable(self._engine.redact(note)), self._clock.now()
        if not await self._engine.write(lambda tx: tx.run(SEEN, card, epoch, now, said, self._workers.id)):
            raise LostLease(f"{card} is not yours any more: another worker has it, or it was moved. Stop.")

    set_session = Write[[str, int, str]]("UPDATE card_run SET session = $3 WHERE card = $1 AND epoch = $2")
    """Note the session of a run, by its card and epoch."""

    async def end(self, run: CardRun, code: int | None, ending: Ending, decide: Decide, promote: Decide) -> bool:
        """Close a run whose process is gone; `decide` says what becomes of the card where nobody moved it. False where
        that was done before."""

        async def change(tx: Transaction) -> bool:
            if not await tx.run(OVER, run.card, run.epoch, self._clock.now(), code, ending.value):
                return False
            await self._cards.apply(tx, run.card, decide, promote)
            tx.rings.add("")
            return True

        return await self._engine.write(change)

    async def report_stale(self, run: CardRun, decide: Decide) -> None:
        """Say once that a run makes no progress."""

        async def change(tx: Transaction) -> None:
            if await tx.run(REPORTED, run.card, run.epoch, run.seen):
                await self._cards.apply(tx, run.card, decide, _never)

        await self._engine.write(change)


def _never(_card: Card) -> None:
    return None
