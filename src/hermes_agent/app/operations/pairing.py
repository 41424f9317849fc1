"""Pairing: codes for people who wrote to the agent, and who was let in by one. For the owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem
    from hermes_agent.store.chats.pairing import Known, Pairing


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairings:
    """Who waits with a code, and who was let in."""

    waiting: list[Known]
    paired: list[Known]


async def list_pairings(access: Access[HomeSystem]) -> Pairings:
    """Who waits, and who was let in."""
    pairing = _pairing(access)
    return Pairings(waiting=await pairing.waiting(), paired=await pairing.paired())


async def approve_pairing(access: Access[HomeSystem], code: str) -> Known:
    """Let in whoever was given this code, as a member. Raises `HermesError`."""
    known = await _pairing(access).approve(code)
    if known is None:
        raise HermesError("Nobody was given this code, or its hour is over.")
    return known


async def revoke_pairing(access: Access[HomeSystem], channel: str, user: str) -> bool:
    """Let somebody in no more; False where no code let them in."""
    return await _pairing(access).revoke(channel, user)


async def clear_pairings(access: Access[HomeSystem]) -> int:
    """Forget all codes that wait; how many there were."""
    return await _pairing(access).clear()


def _pairing(access: Access[HomeSystem]) -> Pairing:
    access.check_owner("Only the owner lets people in.")
    return access.system.store.pairing
