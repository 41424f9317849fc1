"""Operations on chats: post messages to the outbox, and manage pairing codes and the people admitted by them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from hermes_agent.app.chats.settings import ChannelSettings, place_named
from hermes_agent.app.operations.access import Access, HomeSystem, Noun, option, place, verb
from hermes_agent.core.chat import Content, Letter, Slot, SlotState
from hermes_agent.core.clock import Clock, RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, StoreError
from hermes_agent.host.config_edit import set_value

if TYPE_CHECKING:
    from hermes_agent.store.pairing import Known, Pairing

GLANCE = 0.2
"""Seconds between two looks at a slot whose receipt is waited for."""
STORE_PAUSE, MOST_FAILURES = 1.0, 600
"""Seconds until something is tried again for which the store failed, and how often it may in all."""


async def post(system: HomeSystem, letter: Letter) -> None:
    """Put a message into the outbox; idempotent by key. Raises `StoreError`."""
    await system.store.write(lambda tx: system.store.outbox.put(tx, letter))


async def is_posted(system: HomeSystem, key: str) -> bool:
    """Whether the message of that key is, or was, in the outbox."""
    return await system.store.outbox.find(key) is not None


async def post_once(system: HomeSystem, letter: Letter) -> bool:
    """Put a message into the outbox; False if it was posted before."""
    if await is_posted(system, letter.key):
        return False
    await post(system, letter)
    return True


async def send(access: Access[HomeSystem], letter: Letter, patience: float) -> Slot | None:
    """Post a message of the owner and wait at most `patience` seconds for its delivery. Returns its outbox slot."""
    access.check_owner("Only the owner sends messages to any chat.")
    await post(access.system, letter)
    outbox = access.system.store.outbox
    slot = await outbox.find(letter.key)
    while patience > 0 and slot is not None and slot.state not in (SlotState.SENT, SlotState.FAILED):
        await asyncio.sleep(GLANCE)
        patience -= GLANCE
        slot = await outbox.find(letter.key)
    return slot


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRow:
    """A channel of the settings; `home` is the chat for messages that belong to none (empty: none)."""

    name: str
    enabled: bool
    home: str


async def list_channels(access: Access[HomeSystem]) -> list[ChannelRow]:
    """The channels of the settings. For the owner."""
    access.check_owner("Only the owner sees the channels.")
    return [
        ChannelRow(name=name, enabled=each.enabled, home=each.home)
        for name, each in access.system.settings.gateway.channels.items()
    ]


async def send_text(access: Access[HomeSystem], target: str, text: str, patience: float) -> Slot | None:
    """Send a text of the owner to `CHANNEL[:CHAT[:THREAD]]` (a channel alone: its home chat), as `send` does."""
    channels = access.system.settings.gateway.channels
    to = place_named(target, channels)
    if to is None or to.platform not in channels:
        raise HermesError(f"`{target[:80]}` names no chat. Say CHANNEL:CHAT, or a channel that has a home chat.")
    if not text.strip():
        raise HermesError("There is nothing to send.")
    return await send(access, Letter(key=f"send:{RandomIds().short()}", to=to, content=Content(text=text)), patience)


async def tally(access: Access[HomeSystem]) -> dict[str, int]:
    """Number of outbox messages by state."""
    found = await access.system.store.outbox.tally()
    return {**found.states, **({"perhaps twice": found.repeated} if found.repeated else {})}


async def retried(work: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Run `work`, and repeat it from the start while the store fails. Raises `StoreError` if the failure persists."""
    failures = 0
    while True:
        try:
            return await work()
        except StoreError:
            failures += 1
            if failures == MOST_FAILURES:
                raise
        await clock.sleep(STORE_PAUSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairings:
    """People who wait with a pairing code, and people admitted by one."""

    waiting: list[Known]
    paired: list[Known]


async def list_pairings(access: Access[HomeSystem]) -> Pairings:
    """List pending and admitted people."""
    pairing = _pairing(access)
    return Pairings(waiting=await pairing.waiting(), paired=await pairing.paired())


async def approve_pairing(access: Access[HomeSystem], code: str, owner: bool = False) -> str:
    """Admit the holder of this code as a member, or as an owner. Returns a sentence that names them. Raises
    `HermesError`."""
    known = await _pairing(access).approve(code)
    if known is None:
        raise HermesError("This code is unknown or has expired.")
    who = f"{known.name or known.user} ({known.channel}:{known.user})"
    channel = access.system.settings.gateway.channels.get(known.channel, ChannelSettings())
    if owner:
        key, schema = f"gateway.channels.{known.channel}.owners", type(access.system.settings)
        await asyncio.to_thread(set_value, access.system.home, schema, key, owners_with(channel, known.user))
        return f"{who} is admitted, and an owner."
    own = f"`hermes config set gateway.channels.{known.channel}.owners {known.user}` makes them its owner."
    return f"{who} is admitted." + ("" if channel.owners else f" {known.channel} has no owner yet: {own}")


def owners_with(channel: ChannelSettings, user: str) -> str:
    """The owners of a channel with this one, as `hermes config set` takes them."""
    return json.dumps(list(dict.fromkeys((*channel.owners, user))))


async def revoke_pairing(access: Access[HomeSystem], channel: str, user: str) -> str:
    """Revoke an admission. Returns a sentence about the result."""
    gone = await _pairing(access).revoke(channel, user)
    return f"{channel}:{user} no longer has access." if gone else f"{channel}:{user} was not admitted by a code."


async def clear_pairings(access: Access[HomeSystem]) -> str:
    """Delete all pending codes. Returns a sentence with their number."""
    return f"{await _pairing(access).clear()} codes deleted."


def _pairing(access: Access[HomeSystem]) -> Pairing:
    access.check_owner("Only the owner may admit people.")
    return access.system.store.pairing


def _lines(found: Pairings) -> str:
    states = ((found.waiting, "pending"), (found.paired, "admitted"))
    lines = [f"{each.channel}:{each.user}  {each.name}  {state}" for known, state in states for each in known]
    return "\n".join(lines) or "No code is pending, and no person is admitted."


PAIRING = Noun(
    name="pairing",
    offline=True,
    short_help="Admit people by their pairing code.",
    help="Admit people by the pairing code that they got when they wrote to your agent.",
    verbs=(
        verb("list", "List pending codes and admitted people.", list_pairings, text=_lines),
        verb(
            "approve",
            "Admit the person with this code as a member, or (--owner) as an owner.",
            approve_pairing,
            place("code"),
            option("owner", "--owner", "Make them an owner: the agent is theirs as it is yours."),
        ),
        verb("revoke", "Revoke a person's access.", revoke_pairing, place("channel"), place("user")),
        verb("clear", "Delete all pending codes.", clear_pairings),
    ),
)
