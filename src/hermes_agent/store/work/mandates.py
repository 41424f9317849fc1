"""Table of mandates: what narrows the runs of a session in which nobody types."""

from __future__ import annotations

from hermes_agent.core.mandate import Mandate
from hermes_agent.core.records import revive
from hermes_agent.store.transaction import One, Row, Tables, Transaction, plain, written

PUT = "INSERT INTO mandate (session, home, body) VALUES ($1, $home, $2) ON CONFLICT (session) DO NOTHING"


def mandate_of(row: Row) -> Mandate:
    """The mandate of a row."""
    found: Mandate = revive(Mandate, plain(row[0]))
    return found


class Mandates(Tables):
    """One row per session that has a mandate; written with the session, never changed."""

    of = One[[str], Mandate]("SELECT body FROM mandate WHERE session = $1 AND home = $home", mandate_of, brief=True)
    """The session's mandate. Raises `ValueError` where a later version wrote one that this one cannot read."""

    async def put(self, tx: Transaction, session: str, mandate: Mandate) -> None:
        """Give a session its mandate, in the commit that creates the session."""
        await tx.run(PUT, session, written(mandate))
