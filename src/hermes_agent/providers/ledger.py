"""The book of all model calls, as the broker needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hermes_agent.core.model import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOpened:
    """A request that is about to be sent. A further attempt has `call_id` + `.2`, `.3`, ...; `reserved` is the most
    that it may cost in US dollars, None where the price is unknown."""

    call_id: str
    session: str
    run: str
    turn: int
    purpose: str
    provider: str
    model: str
    prefix: str
    messages: int
    reserved: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettled:
    """How it ended: `outcome` is `answered`, `stopped`, or the class of the error; `cost` in US dollars, None:
    unknown."""

    call_id: str
    outcome: str
    usage: Usage
    cost: float | None
    seconds: float


class Ledger(Protocol):
    """The book of all calls.

    - `open` returns when the row is committed;
    - `settle` completes it; a row that is never settled stays "unknown", never zero.
    """

    async def open(self, call: CallOpened) -> None: ...

    async def settle(self, call: CallSettled) -> None: ...
