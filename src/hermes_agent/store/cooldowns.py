"""Cool-downs: models and API keys that are not used for a while after errors, shared by every process on this store."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.transaction import Columns, Many, Tables, Transaction

PUT = """
INSERT INTO cool_down (home, provider, credential, model, mark, until, reason) VALUES ($home, $1, $2, $3, $4, $5, $6)
ON CONFLICT (home, provider, credential, model)
DO UPDATE SET mark = excluded.mark, until = excluded.until, reason = excluded.reason
"""
GET = """
SELECT provider, credential, model, mark, until, reason FROM cool_down
WHERE home = $home AND until > $1 ORDER BY 1, 2, 3
"""
FORGET = """
DELETE FROM cool_down
WHERE home = $home AND (CAST($1 AS TEXT) = '' OR provider = $1) AND (CAST($2 AS TEXT) = '' OR credential = $2)
"""
OLD = "DELETE FROM cool_down WHERE home = $home AND until <= $1"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoolDown:
    """Something of a provider that is not asked before `until` (seconds since 1970), and the class of the error that it
    rests for. An empty `credential` or `model` means every one; `mark` tells one key from another under the same
    name."""

    provider: str
    credential: str = ""
    model: str = ""
    mark: str = ""
    until: float
    reason: str

    def covers(self, provider: str, credential: str, model: str) -> bool:
        """Whether this key of this provider rests for this model."""
        return self.provider == provider and self.credential in {"", credential} and self.model in {"", model}


cool_down_of = Columns(CoolDown, "provider, credential, model, mark, until, reason")


class CoolDowns(Tables):
    """Table of cool-downs, one row each."""

    async def put(self, cool_downs: Sequence[CoolDown], now: float) -> None:
        """Store these, replacing earlier ones for the same model or key, and delete expired ones."""

        async def change(tx: Transaction) -> None:
            await tx.run(OLD, now)
            for one in cool_downs:
                await tx.run(PUT, *cool_down_of.of(one))

        await self._engine.write(change)

    resting = Many[[float], CoolDown](GET, cool_down_of)
    """The cool-downs in force at that time."""

    async def forget(self, provider: str = "", credential: str = "") -> int:
        """End cool-downs, of one provider or credential where given; their number."""
        return await self._engine.write(lambda tx: tx.run(FORGET, provider, credential))
