"""The broker's book, kept in the store."""

from __future__ import annotations

from hermes_agent.core.clock import Clock
from hermes_agent.providers.broker import CallOpened, CallSettled
from hermes_agent.store.database import Store
from hermes_agent.store.usage import UsageRow


class StoredLedger:
    """The `Ledger` of one principal: a row before each call, completed after it."""

    def __init__(self, store: Store, clock: Clock, principal: str) -> None:
        self._store = store
        self._clock = clock
        self._principal = principal

    async def open(self, call: CallOpened) -> None:
        """Commit the row of a call that is about to be made."""
        row = UsageRow(
            call_id=call.call_id,
            session=call.session,
            run=call.run,
            turn=call.turn,
            purpose=call.purpose,
            provider=call.provider,
            model=call.model,
            prefix=call.prefix,
            messages=call.messages,
            at=self._clock.now(),
            principal=self._principal,
            reserved=call.reserved,
        )
        await self._store.usage.open(row)

    async def settle(self, call: CallSettled) -> None:
        """Complete the row."""
        await self._store.usage.settle(call.call_id, call.usage, call.cost, call.outcome, call.seconds)
