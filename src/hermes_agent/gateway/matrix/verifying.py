"""Matrix device verification by emoji (SAS): answers verifications that people start.

The agent starts none. Messages follow "Short Authentication String (SAS) verification" of the client-server API, in
rooms or to-device. matrix-nio's implementation is not used: its commitment and emoji differ from the specification,
and it supports neither rooms nor cross-signing keys.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import ChannelError
from hermes_agent.gateway.matrix.client import Event, inside, table, text
from hermes_agent.gateway.matrix.decryption import canonical, unpadded
from hermes_agent.gateway.matrix.devices import Devices
from hermes_agent.gateway.matrix.rooms import Rooms, Say
from hermes_agent.host.late import libraries
from hermes_agent.host.tasks import spawn

log = logging.getLogger(__name__)

PREFIX = "m.key.verification."
REQUEST, SAS = f"{PREFIX}request", "m.sas.v1"
AGREEMENT, HASH = "curve25519-hkdf-sha256", "sha256"
MACS = ("hkdf-hmac-sha256.v2", "hkdf-hmac-sha256")
"""How the last message is protected; the second is an older form that some programs have alone."""
SHOWN = ("emoji", "decimal")
MOST = 20
"""Verifications that are under way at a time; the oldest gives way."""

Content = dict[str, Any]
Reply = tuple[str, Content]
"""Type and content of an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """One side of a Matrix device verification: a device, and the public keys it vouches for by key id."""

    user: str
    device: str
    keys: Mapping[str, str]


class Wrong(Exception):
    """A Matrix device verification has to be cancelled; `code` is Matrix's cancel code."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(slots=True, kw_only=True)
class Sas:
    """State of one Matrix verification by emoji, from the accepting side. `way` is the reference in each message."""

    own: Party
    other: Party
    mark: str
    way: Content
    key: Any
    mac: str = ""
    shared: Any = None
    theirs: str = ""

    def started(self, content: Event) -> list[Reply]:
        """Handle `start`: reply with the agreed methods and a commitment to our key."""
        offered = {name: _texts(content.get(name)) for name in ("key_agreement_protocols", "hashes", *OFFERS)}
        self.mac = next((each for each in MACS if each in offered["message_authentication_codes"]), "")
        shown = [each for each in SHOWN if each in offered["short_authentication_string"]]
        agreed = AGREEMENT in offered["key_agreement_protocols"] and HASH in offered["hashes"]
        if content.get("method") != SAS or not agreed or not self.mac or not shown:
            raise Wrong("m.unknown_method", "There is no way that both sides know.")
        commitment = hashlib.sha256(self._public.encode() + canonical(content)).digest()
        accepted = {
            "method": SAS,
            "key_agreement_protocol": AGREEMENT,
            "hash": HASH,
            "message_authentication_code": self.mac,
            "short_authentication_string": shown,
            "commitment": unpadded(commitment),
        }
        return [(f"{PREFIX}accept", {**accepted, **self.way})]

    def keyed(self, content: Event) -> list[Reply]:
        """Handle `key`: reply with our key; now both sides can derive the emoji."""
        if not self.mac or self.shared is not None:
            raise Wrong("m.unexpected_message", "A key is not what comes next.")
        self.theirs = text(content.get("key"))
        try:
            self.shared = self.key.diffie_hellman(libraries.vodozemac.Curve25519PublicKey.from_base64(self.theirs))
        except (libraries.vodozemac.KeyException, libraries.vodozemac.SasException, ValueError) as error:
            raise Wrong("m.invalid_message", "The key is none.") from error
        return [(f"{PREFIX}key", {"key": self._public, **self.way})]

    @property
    def emoji(self) -> str:
        """The seven emoji with names that a person compares."""
        sides = (
            f"{self.other.user}|{self.other.device}|{self.theirs}",
            f"{self.own.user}|{self.own.device}|{self._public}",
        )
        made = self.shared.bytes(f"MATRIX_KEY_VERIFICATION_SAS|{'|'.join(sides)}|{self.mark}")
        signs = libraries.nio.crypto.Sas.emoji
        return ", ".join(" ".join(signs[index]) for index in made.emoji_indices)

    def compared(self, content: Event) -> list[Reply]:
        """Handle `mac` after the person confirmed the emoji: check their keys and reply with ours."""
        if self.shared is None:
            raise Wrong("m.unexpected_message", "Nothing was agreed on yet.")
        marks = {name: text(each) for name, each in table(content.get("mac")).items()}
        info = self._info(self.other, self.own)
        listed = ",".join(sorted(marks))
        if self._sealed(listed, f"{info}KEY_IDS") != content.get("keys"):
            raise Wrong("m.key_mismatch", "The list of keys is not theirs.")
        device = f"ed25519:{self.other.device}"
        if device not in marks or marks[device] != self._sealed(self.other.keys.get(device, ""), f"{info}{device}"):
            raise Wrong("m.key_mismatch", "The key of the device is not theirs.")
        back = self._info(self.own, self.other)
        mac = {name: self._sealed(key, f"{back}{name}") for name, key in self.own.keys.items()}
        keys = self._sealed(",".join(sorted(mac)), f"{back}KEY_IDS")
        return [(f"{PREFIX}mac", {"mac": mac, "keys": keys, **self.way}), (f"{PREFIX}done", dict(self.way))]

    @property
    def _public(self) -> str:
        return str(self.key.public_key.to_base64())

    def _info(self, sender: Party, receiver: Party) -> str:
        return f"MATRIX_KEY_VERIFICATION_MAC{sender.user}{sender.device}{receiver.user}{receiver.device}{self.mark}"

    def _sealed(self, content: str, info: str) -> str:
        seal = self.shared.calculate_mac if self.mac == MACS[0] else self.shared.calculate_mac_invalid_base64
        return str(seal(content, info))


OFFERS = ("message_authentication_codes", "short_authentication_string")


class Verifying:
    """The Matrix device verifications that are running. They mark nobody as verified, as the agent cannot compare
    emoji: the person compares them with the agent's log."""

    def __init__(self) -> None:
        self._running: OrderedDict[tuple[str, str], Sas] = OrderedDict()

    def hear(self, own: Party, other: Party, event: Event) -> list[Reply]:
        """The replies to a verification event. The sending device is not always named; `other` is then needed only
        at the start."""
        content = table(event.get("content"))
        kind = text(event.get("type")).removeprefix(PREFIX)
        mark, way = way_of(event)
        if not mark:
            return []
        if kind == "request" or content.get("msgtype") == REQUEST:
            return [(f"{PREFIX}ready", {"from_device": own.device, "methods": [SAS], **way})]
        at = (other.user, mark)
        try:
            return self._answer(kind, at, own, other, content, way)
        except Wrong as error:
            wrong = error
        except UnicodeEncodeError:  # Half a sign, which no UTF-8 has and nobody can hash or sign.
            wrong = Wrong("m.invalid_message", "The message is not text.")
        self._running.pop(at, None)
        log.warning("matrix: %s could not verify this device: %s", other.user, wrong)
        return [(f"{PREFIX}cancel", {"code": wrong.code, "reason": str(wrong), **way})]

    def device_of(self, user: str, mark: str) -> str:
        """The device that a user verifies with; empty if none."""
        running = self._running.get((user, mark))
        return running.other.device if running else ""

    def _answer(
        self, kind: str, at: tuple[str, str], own: Party, other: Party, content: Event, way: Content
    ) -> list[Reply]:
        if kind == "start":
            if f"ed25519:{other.device}" not in other.keys:
                raise Wrong(
                    "m.key_mismatch", "The keys of that device are not known: verify in a room that both are in."
                )
            sas = Sas(own=own, other=other, mark=at[1], way=way, key=libraries.vodozemac.Sas())
            self._running[at] = sas
            while len(self._running) > MOST:
                self._running.popitem(last=False)
            return sas.started(content)
        running = self._running.get(at)
        if running is None:
            return []
        match kind:
            case "key":
                replies = running.keyed(content)
                log.info("matrix: %s compares these with what they are shown: %s", other.user, running.emoji)
                return replies
            case "mac":
                replies = running.compared(content)
                log.info("matrix: %s verified this device from %s", other.user, running.other.device)
                return replies
            case "cancel" | "done":
                del self._running[at]
        return []


def way_of(event: Event) -> tuple[str, Content]:
    """A verification's id, and the reference to put into replies: the request's event id in a room, otherwise the
    transaction id."""
    content = table(event.get("content"))
    if chosen := text(content.get("transaction_id")):
        return chosen, {"transaction_id": chosen}
    begun = text(event.get("event_id")) if content.get("msgtype") == REQUEST else ""
    request = begun or text(inside(content, "m.relates_to").get("event_id"))
    return request, {"m.relates_to": {"rel_type": "m.reference", "event_id": request}}


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def is_verification(event: Event, own: str) -> bool:
    """Whether a room message belongs to a verification of the device of `own`."""
    content = table(event.get("content"))
    asks = content.get("msgtype") == REQUEST and content.get("to") == own
    return asks or text(event.get("type")).startswith(PREFIX)


MINUTE = 60.0
EACH, STRANGERS, OTHERS = 20, 20, 100
"""Messages about verifying that are taken in within a minute: of one person, of all strangers, of all others. Who
verifies a device sends five."""


class VerificationReplies:
    """Answers Matrix verification messages, in order per user and in parallel across users, since anybody may start one
    and key queries are slow. `own` gives this device."""

    def __init__(self, devices: Devices, rooms: Rooms, now: Callable[[], float], own: Callable[[], Party]) -> None:
        self._devices = devices
        self._rooms = rooms
        self._limits = Limits(now)
        self._own = own
        self._verifying = Verifying()
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        self._work: set[asyncio.Task[None]] = set()

    def take(self, event: Event, say: Say | None = None) -> None:
        """Answer a message in the background; through `say` if it came in a room. Messages over the limit are
        dropped."""
        sender = text(event.get("sender"))
        strange = say is None and not self._rooms.met(sender) and not self._devices.has(sender)
        if self._limits.allow(sender, strange=strange):
            work = spawn(self._answer(event, sender, say, strange=strange), name="matrix verification")
            self._work.add(work)
            work.add_done_callback(self._work.discard)

    async def close(self) -> None:
        for work in self._work:
            work.cancel()
        if self._work:
            await asyncio.wait(self._work)

    async def _answer(self, event: Event, sender: str, say: Say | None, *, strange: bool) -> None:
        """Answer one message. Strangers' keys are not queried: each query may take seconds."""
        device = text(inside(event, "content").get("from_device"))
        begins = device and event.get("type") == f"{PREFIX}start"
        async with self._turns.setdefault(sender, asyncio.Lock()):
            key = await self._devices.key_of(sender, device) if begins and not strange else ""
            other = Party(user=sender, device=device, keys={f"ed25519:{device}": key} if key else {})
            to = device or self._verifying.device_of(sender, way_of(event)[0])
            replies = self._verifying.hear(self._own(), other, event) if say is not None or to else []
            with suppress(ChannelError):
                for kind, content in replies:
                    await (self._devices.send({sender: {to: content}}, kind) if say is None else say(kind, content))


class Limits:
    """Rate limit of Matrix verification messages per minute, with a separate share for strangers."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._begun = now()
        self._taken: Counter[str | bool] = Counter()
        self._said = False

    def allow(self, user: str, *, strange: bool) -> bool:
        """Count a message if it is within the limits. Returns whether it is."""
        if self._now() - self._begun >= MINUTE:
            self._begun, self._taken, self._said = self._now(), Counter(), False
        if self._taken[user] < EACH and self._taken[strange] < (STRANGERS if strange else OTHERS):
            self._taken.update((user, strange))
            return True
        if not self._said:
            self._said = True
            log.warning("matrix: too much is sent to verify this device, of %s too; the rest is passed over", user)
        return False
