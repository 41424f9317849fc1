"""Registry of the homes that use a database, and the refusal of an unknown one."""

from __future__ import annotations

from time import localtime, strftime

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import DatabaseInUse
from hermes_agent.store.transaction import Columns, Dialect, Many, Tables, Transaction

FIELDS = "id, host, folder, since"
ALL = f"SELECT {FIELDS} FROM home WHERE home = $home ORDER BY since, id"
ENTER = (
    f"INSERT INTO home (home, {FIELDS}) VALUES ($home, $1, $2, $3, $4) "
    "ON CONFLICT (id) DO UPDATE SET host = excluded.host, folder = excluded.folder"
)
# What was written before homes had ids is the first one's.
ADOPT = "UPDATE version SET machine = $1 WHERE home = $home AND machine = ''"
ALONE = {Dialect.SQLITE: "SELECT 1", Dialect.POSTGRES: "LOCK TABLE home IN EXCLUSIVE MODE"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHome:
    """A registered home: its id, host and folder, and since when (seconds since 1970) it uses the database."""

    id: str
    host: str
    folder: str
    since: float


home_of = Columns(KnownHome, FIELDS)


class Homes(Tables):
    """The registered homes of one database."""

    list = Many[[], KnownHome](ALL, home_of)
    """All homes, the oldest first."""

    async def enter(self, home: KnownHome, *, shared: bool) -> None:
        """Register this home. Raises `DatabaseInUse` where another one uses the database and it is not `shared`."""
        known = await self.list()
        _check(home, known, shared)
        if (home.id, home.host, home.folder) not in [(each.id, each.host, each.folder) for each in known]:
            await self._engine.write(lambda tx: _enter(tx, home, shared))


async def _enter(tx: Transaction, home: KnownHome, shared: bool) -> None:
    await tx.rows(ALONE[tx.dialect])
    known = [home_of(row) for row in await tx.rows(ALL)]
    _check(home, known, shared)
    await tx.run(ENTER, *home_of.of(home))
    if not known:
        await tx.run(ADOPT, home.id)


def _check(home: KnownHome, known: list[KnownHome], shared: bool) -> None:
    others = [each for each in known if each.id != home.id]
    if others and not shared:
        named = " and ".join(
            f"{each.folder} on {each.host} (since {strftime('%Y-%m-%d %H:%M', localtime(each.since))})"
            for each in others[:3]
        )
        raise DatabaseInUse(
            f"The database of `store.url` is used by another home: {named}. Two homes on one database share their "
            "sessions, chats and people. Where both are of one household, or that home is gone, set `store.shared: "
            "true` in the config.yaml of each; otherwise give this home a database of its own."
        )
