"""The providers' cool-downs, kept in the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from hermes_agent.core.clock import Clock
from hermes_agent.providers.routing.cooldowns import Rest, Use
from hermes_agent.store.cooldowns import CoolDown
from hermes_agent.store.database import Store


class StoredCoolDowns:
    """The `CoolDowns` of every process on one store; how a key was used is told by the ledger."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def resting(self, now: float) -> Sequence[Rest]:
        """What has not ended at `now`."""
        return [Rest(**asdict(one)) for one in await self._store.cool_downs.resting(now)]

    async def rest(self, rests: Sequence[Rest]) -> None:
        """Keep these, each in place of an earlier one for the same thing."""
        await self._store.cool_downs.put([CoolDown(**asdict(one)) for one in rests], self._clock.now())

    async def uses(self, provider: str, since: float) -> Mapping[str, Use]:
        """How often each of the provider's keys was used since then, and when last."""
        uses = await self._store.usage.uses(provider, since)
        return {name: Use(calls=calls, last=last) for name, (calls, last) in uses.items()}
