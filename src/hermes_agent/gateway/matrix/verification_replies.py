"""Answers to people who verify this device, given beside everything else: anybody anywhere may begin that."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import ChannelError
from hermes_agent.gateway.matrix.devices import Device, Devices
from hermes_agent.gateway.matrix.rooms import Rooms
from hermes_agent.gateway.matrix.shapes import Event, inside, text
from hermes_agent.gateway.matrix.verifying import PREFIX, Party, Verifying, way_of
from hermes_agent.host.tasks import spawn

log = logging.getLogger(__name__)

MINUTE = 60.0
EACH, STRANGERS, OTHERS = 20, 20, 100
"""Messages about verifying that are taken in within a minute: of one person, of all strangers, of all others. Who
verifies a device sends five."""

Say = Callable[[str, Event], Awaitable[None]]
"""Sends type and content of an event where a message came from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A message that is to be answered. `strange`: from somebody whom the agent never met, from device to device.
    `say` is None for those."""

    event: Event
    sender: str
    strange: bool
    say: Say | None

    @property
    def begins(self) -> Device | None:
        """The device that is to be verified against, where the message begins a verification; its key is needed
        then."""
        device = text(inside(self.event, "content").get("from_device"))
        return (self.sender, device) if device and self.event.get("type") == f"{PREFIX}start" else None


class VerificationReplies:
    """One after the other, in the order in which they came. `own` is this device, whose keys are there by then."""

    def __init__(self, devices: Devices, rooms: Rooms, now: Callable[[], float], own: Callable[[], Party]) -> None:
        self._devices = devices
        self._rooms = rooms
        self._limits = Limits(now)
        self._own = own
        self._verifying = Verifying()
        self._waiting: list[Asked] = []
        self._work: asyncio.Task[None] | None = None

    def take(self, event: Event, say: Say | None = None) -> None:
        """Answer a message soon; by `say` where it came in a room. What is too much is passed over."""
        sender = text(event.get("sender"))
        strange = say is None and not self._rooms.met(sender) and not self._devices.has(sender)
        if not self._limits.allow(sender, strange=strange):
            return
        self._waiting.append(Asked(event=event, sender=sender, strange=strange, say=say))
        if self._work is None or self._work.done():
            self._work = spawn(self._answer_all(), name="matrix verification")

    async def close(self) -> None:
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait((self._work,))

    async def _answer_all(self) -> None:
        while self._waiting:
            some, self._waiting = self._waiting, []
            keys = await self._keys(some)
            for asked in some:
                with suppress(ChannelError):
                    await self._answer(asked, keys)

    async def _keys(self, some: Sequence[Asked]) -> Mapping[Device, str]:
        """The keys of the devices that begin, asked for at once. Strangers' are not: each may cost seconds."""
        wanted = {asked.begins for asked in some if asked.begins and not asked.strange}
        keys = await self._devices.kept_keys(wanted)
        if missing := wanted - keys.keys():
            try:
                keys |= await self._devices.keys_of(missing)
            except ChannelError as error:
                log.warning("matrix: the keys of who verifies this device are not known: %s", error)
        return keys

    async def _answer(self, asked: Asked, keys: Mapping[Device, str]) -> None:
        device = text(inside(asked.event, "content").get("from_device"))
        to = device or self._verifying.device_of(asked.sender, way_of(asked.event)[0])
        key = keys.get((asked.sender, device))
        other = Party(user=asked.sender, device=device, keys={f"ed25519:{device}": key} if key else {})
        for kind, content in self._verifying.hear(self._own(), other, asked.event):
            if asked.say is not None:
                await asked.say(kind, content)
            elif to:
                await self._devices.send({asked.sender: {to: content}}, kind)


class Limits:
    """How much is taken in within a minute. Strangers, of whom there may be any number, use up nobody else's share."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._begun = now()
        self._people: Counter[str] = Counter()
        self._together: Counter[bool] = Counter()
        self._said = False

    def allow(self, user: str, *, strange: bool) -> bool:
        """Whether one more is taken in; what is counts."""
        if self._now() - self._begun >= MINUTE:
            self._begun, self._said = self._now(), False
            self._people.clear()
            self._together.clear()
        if self._people[user] < EACH and self._together[strange] < (STRANGERS if strange else OTHERS):
            self._people[user] += 1
            self._together[strange] += 1
            return True
        if not self._said:
            self._said = True
            log.warning("matrix: too much is sent to verify this device, of %s too; the rest is passed over", user)
        return False
