"""The broker's book, kept in the store."""

from __future__ import annotations

from hermes_agent.agent.journal import Journal
from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import LostLease
from hermes_agent.providers.broker import CallOpened, CallSettled
from hermes_agent.store.database import Store
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.usage import UsageRow


class StoredLedger:
    """The `Ledger` of calls that belong to no run; a commit of its own before and after each."""

    def __init__(self, store: Store, clock: Clock, principal: str) -> None:
        self._store = store
        self._clock = clock
        self._principal = principal

    async def open(self, call: CallOpened) -> None:
        """Commit the row of a call that is about to be made."""
        await self._store.usage.open(row_of(call, self._principal, self._clock.now()))

    async def settle(self, call: CallSettled) -> None:
        """Complete the row."""
        await self._store.usage.settle(call.call_id, call.usage, call.cost, call.outcome, call.seconds)


class RunLedger:
    """The `Ledger` of the calls of one run: the row before a call shares the commit of what led to it, its completion
    shares the commit of the reply."""

    def __init__(self, store: Store, journal: Journal, clock: Clock, principal: str) -> None:
        self._store = store
        self._journal = journal
        self._clock = clock
        self._principal = principal

    async def open(self, call: CallOpened) -> None:
        """Commit the row of a call that is about to be made, and everything that was posted before it."""
        row = row_of(call, self._principal, self._clock.now())

        async def change(tx: Transaction) -> None:
            await self._store.usage.open(row, tx)

        await self._journal.commit(changes=[change], durable=False)

    async def settle(self, call: CallSettled) -> None:
        """Complete the row soon; also where the lane was lost: the call was paid all the same."""

        async def change(tx: Transaction) -> None:
            await self._store.usage.settle(call.call_id, call.usage, call.cost, call.outcome, call.seconds, tx)

        try:
            self._journal.post(changes=[change])
        except LostLease:
            await self._store.write(change)


def row_of(call: CallOpened, principal: str, at: float) -> UsageRow:
    """The ledger's row of a call that was opened."""
    return UsageRow(
        call_id=call.call_id,
        session=call.session,
        run=call.run,
        turn=call.turn,
        purpose=call.purpose,
        provider=call.provider,
        model=call.model,
        prefix=call.prefix,
        messages=call.messages,
        at=at,
        principal=principal,
        credential=call.credential,
        reserved=call.reserved,
    )
