"""Pairing: codes for people who wrote to the agent, and who was let in by one. For the owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.app.operations.verbs import Argument, Noun, Verb
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


async def approve_pairing(access: Access[HomeSystem], code: str) -> str:
    """Let in whoever was given this code, as a member; who that is. Raises `HermesError`."""
    known = await _pairing(access).approve(code)
    if known is None:
        raise HermesError("Nobody was given this code, or its hour is over.")
    return f"{known.name or known.user} ({known.channel}:{known.user}) is let in."


async def revoke_pairing(access: Access[HomeSystem], channel: str, user: str) -> str:
    """Let somebody in no more; whether they were."""
    gone = await _pairing(access).revoke(channel, user)
    return f"{channel}:{user} is let in no more." if gone else f"{channel}:{user} was not let in by a code."


async def clear_pairings(access: Access[HomeSystem]) -> str:
    """Forget all codes that wait; how many there were."""
    return f"{await _pairing(access).clear()} codes are forgotten."


def _pairing(access: Access[HomeSystem]) -> Pairing:
    access.check_owner("Only the owner lets people in.")
    return access.system.store.pairing


def _lines(found: Pairings) -> str:
    states = ((found.waiting, "waits"), (found.paired, "let in"))
    lines = [f"{each.channel}:{each.user}  {each.name}  {state}" for known, state in states for each in known]
    return "\n".join(lines) or "Nobody waits, and nobody was let in."


PAIRING = Noun(
    name="pairing",
    short_help="Let people in who were given a code.",
    help="Let people in who wrote to your agent and were given a code.",
    verbs=(
        Verb(
            name="list",
            help="List who waits, and who was let in.",
            act=list_pairings,
            text=_lines,
            json=True,
            offline=True,
        ),
        Verb(
            name="approve",
            help="Let in whoever was given this code: as a member.",
            act=approve_pairing,
            arguments=(Argument(name="code"),),
            offline=True,
        ),
        Verb(
            name="revoke",
            help="Let somebody in no more.",
            act=revoke_pairing,
            arguments=(Argument(name="channel"), Argument(name="user")),
            offline=True,
        ),
        Verb(name="clear", help="Forget all codes that wait.", act=clear_pairings, offline=True),
    ),
)
