"""Database health: engine and version, and the result of its integrity check."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.database import Store
from hermes_agent.store.transaction import Dialect, Transaction

ABOUT = {
    Dialect.SQLITE: "SELECT 'SQLite ' || sqlite_version(), sqlite_compileoption_used('ENABLE_FTS5')",
    Dialect.POSTGRES: "SELECT split_part(version(), ' on ', 1), 1",
}
SQLITE_CHECK = "SELECT quick_check FROM pragma_quick_check LIMIT 1"
WELL = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Result of a health check: `engine` is name and version of the database, `full_text` whether it has full-text
    search, `damage` empty where the check passed."""

    engine: str
    full_text: bool
    damage: str = ""


async def examine(store: Store) -> Health:
    """Run the health check; reads every page of a SQLite file. Raises `StoreError`."""
    return await store.read(_examine)


async def _examine(tx: Transaction) -> Health:
    about = await tx.row(ABOUT[tx.dialect])
    engine, full_text = about or ("", 0)
    check = await tx.row(SQLITE_CHECK) if tx.dialect is Dialect.SQLITE else None
    damage = str(check[0]) if check and check[0] != WELL else ""
    return Health(engine=str(engine), full_text=bool(full_text), damage=damage)
