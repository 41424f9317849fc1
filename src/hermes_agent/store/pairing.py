"""Pairing of strangers: codes, stored only as hashes, with which the owner admits them; and short facts per chat."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.store.transaction import Columns, Keyed, Many, Tables, TimedTables, Transaction, Write, storable

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Letters and digits that nobody takes for one another; 8 of them are 40 bits."""
LENGTH = 8
VALID = 3600.0
"""Seconds that a code holds."""
PENDING = 3
"""Codes of one channel that may wait at a time."""
AGAIN = 600.0
"""Seconds before the same person is given another code."""
FAILURES, LOCKED = 5, 3600.0
"""Wrong codes after which no code is taken for that long."""

OLD = (
    "DELETE FROM pairing WHERE home = $home AND at < $1",
    "DELETE FROM pairing_failure WHERE home = $home AND at < $1",
)
ASKED = "SELECT user_id, at FROM pairing WHERE home = $home AND channel = $1"
ASK = (
    "INSERT INTO pairing (home, channel, user_id, name, salt, hash, at) VALUES ($home, $1, $2, $3, $4, $5, $6) "
    "ON CONFLICT (home, channel, user_id) DO UPDATE SET name = excluded.name, salt = excluded.salt, hash = "
    "excluded.hash, "
    "at = excluded.at"
)
WAITING = "SELECT channel, user_id, name, at, salt, hash FROM pairing WHERE home = $home ORDER BY at, channel, user_id"
ANSWERED = "DELETE FROM pairing WHERE home = $home AND channel = $1 AND user_id = $2"
ADMIT = (
    "INSERT INTO paired (home, channel, user_id, name, at) VALUES ($home, $1, $2, $3, $4) "
    "ON CONFLICT (home, channel, user_id) DO UPDATE SET name = excluded.name"
)
PAIRED = "SELECT channel, user_id, name, at FROM paired WHERE home = $home ORDER BY channel, user_id"
REVOKE = "DELETE FROM paired WHERE home = $home AND channel = $1 AND user_id = $2"
CLEAR = "DELETE FROM pairing WHERE home = $home"
FAIL = "INSERT INTO pairing_failure (home, channel, at) VALUES ($home, '', $1)"
FAILED = "SELECT count(*) FROM pairing_failure WHERE home = $home AND at >= $1"


class PairingLocked(HermesError):
    """Raised after too many wrong pairing codes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A person who requested pairing or was admitted (`at` that time)."""

    channel: str
    user: str
    name: str
    at: float


known_of = Columns(Known, "channel, user, name, at")


class Pairing(TimedTables):
    """Pairing requests and admitted people, per channel."""

    async def ask(self, channel: str, user: str, name: str) -> str:
        """A code for a stranger; empty where they got one recently, or too many wait."""
        code = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
        salt, now = secrets.token_hex(16), self._clock.now()

        async def change(tx: Transaction) -> bool:
            for statement in OLD:
                await tx.run(statement, now - VALID)
            rows = {row[0]: row[1] for row in await tx.rows(ASKED, channel)}
            if (user in rows and now - rows[user] < AGAIN) or (user not in rows and len(rows) >= PENDING):
                return False
            await tx.run(ASK, channel, user, storable(name), salt, _hash(salt, code), now)
            return True

        return code if await self._engine.write(change) else ""

    async def approve(self, code: str) -> Known | None:
        """Admit whoever got this code; None where nobody did. Raises `PairingLocked`."""
        wanted, now = code.strip().upper().replace("-", ""), self._clock.now()

        async def change(tx: Transaction) -> Known | bool | None:
            row = await tx.row(FAILED, now - LOCKED)
            if row is not None and row[0] >= FAILURES:
                return False
            for waiting in await tx.rows(WAITING):
                if now - waiting[3] <= VALID and hmac.compare_digest(waiting[5], _hash(waiting[4], wanted)):
                    await tx.run(ANSWERED, *waiting[:2])
                    await tx.run(ADMIT, *waiting[:3], now)
                    tx.rings.add("")
                    return known_of((*waiting[:3], now))
            await tx.run(FAIL, now)
            return None

        found = await self._engine.write(change)
        if found is False:
            raise PairingLocked("Too many wrong codes: no code is accepted for an hour.")
        return found if isinstance(found, Known) else None

    async def waiting(self) -> list[Known]:
        """The people with a valid code."""
        oldest = self._clock.now() - VALID
        rows = await self._engine.read(lambda tx: tx.rows(WAITING), brief=True)
        return [known for known in map(known_of, rows) if known.at >= oldest]

    paired = Many[[], Known](PAIRED, known_of, brief=True)
    """The admitted people."""
    clear = Write[[]](CLEAR)
    """Delete all codes; their number."""

    async def revoke(self, channel: str, user: str) -> bool:
        """Remove an admitted person; False where they were not admitted."""

        async def change(tx: Transaction) -> int:
            tx.rings.add("")
            return await tx.run(REVOKE, channel, user)

        return await self._engine.write(change) > 0


def _hash(salt: str, code: str) -> str:
    return hashlib.sha256(f"{salt}{code}".encode()).hexdigest()


GET = "SELECT name, value FROM chat_fact WHERE home = $home AND place = $1 ORDER BY name"
ADD = "INSERT INTO chat_fact (home, place, name, value) VALUES ($home, $1, $2, $3) ON CONFLICT (home, place, name) DO "
SET, SET_FIRST = f"{ADD}UPDATE SET value = excluded.value", f"{ADD}NOTHING"
UNSET = "DELETE FROM chat_fact WHERE home = $home AND place = $1 AND name = $2"


class Facts(Tables):
    """Key-value table of short texts per chat."""

    of = Keyed[[str], str](GET, brief=True)
    """The values of that chat by name."""

    async def set(self, place: str, name: str, value: str, *, first: bool = False) -> None:
        """Set a value (with `first` only where none is set); an empty value deletes it."""

        async def change(tx: Transaction) -> None:
            if value:
                await tx.run(SET_FIRST if first else SET, place, name, storable(value))
            else:
                await tx.run(UNSET, place, name)

        await self._engine.write(change)
