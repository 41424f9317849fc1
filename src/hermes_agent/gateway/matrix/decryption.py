"""End-to-end encryption of Matrix rooms (Olm, Megolm) with matrix-nio's crypto engine and our own HTTP requests."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from hermes_agent.gateway.bounded_cache import BoundedCache
from hermes_agent.gateway.channel import MessageGone, NeverHere, NotNow
from hermes_agent.gateway.matrix.client import Client, Event, count, inside, table, tables, text
from hermes_agent.gateway.matrix.decryption import Vouching
from hermes_agent.gateway.matrix.devices import ENCRYPTED, SIGNED, WRONG, Device, Devices
from hermes_agent.gateway.matrix.rooms import Crypto, Rooms, Say
from hermes_agent.host.late import libraries
from hermes_agent.tools.permission.requests import PREFIX, Party, VerificationReplies

log = logging.getLogger(__name__)

T = TypeVar("T")
KEYLESS = "I cannot read what was written here: its key did not reach me. Write it again, please."
KEY_SECONDS = 20.0
"""How long a message's key may come after it; it is asked for meanwhile."""
VERIFIED = 100
"""Messages from device to device about verifying this one that wait until its keys are put up, the newest."""
SEEN = 1000
"""Messages to this device that are remembered, by their hashes, since what a sync told may be told again."""


class Decryption(Crypto):
    """`Crypto` implementation for one device. The crypto engine runs in one thread, one step at a time; requests to the
    homeserver block only writers in the same room.

    Keys are stored in `folder`; a new folder knows none of them. The account cross-signs its device, and people may
    verify it; the agent verifies nobody: whoever the homeserver lists as a room member gets the keys of the agent's
    messages. `rooms` gives the members; `note` shows the fingerprint to compare. `now` is monotonic.
    """

    excuse = KEYLESS
    patience = KEY_SECONDS

    def __init__(
        self,
        client: Client,
        folder: Path,
        rooms: Rooms,
        now: Callable[[], float],
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._folder = folder
        self._rooms = rooms
        self._devices = Devices(client, self._run)
        self._writing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="olm")
        self._seen = BoundedCache[bytes, bool](SEEN)
        self._vouching = Vouching(client, folder, note)
        self._answering = VerificationReplies(self._devices, rooms, now, self._own)
        self._asked: deque[Event] = deque(maxlen=VERIFIED)
        self._closed = False

    async def begin(self, user: str, device: str) -> None:
        if not device:
            raise NotNow("MATRIX_ACCESS_TOKEN belongs to no device, so nothing can be encrypted for it: log in anew.")
        if self._who != (user, device):
            await self._run(self._open, user, device)
            self._devices.who = (user, device)

    async def synced(self, found: Event) -> None:
        await self._run(self._learn, found)
        with suppress(NeverHere, MessageGone):
            await self._exchange()
        self._devices.refresh()
        while self._asked:
            self._answering.take(self._asked.popleft())

    def verify(self, event: Event, say: Say) -> None:
        if self._olm is not None:
            self._answering.take(event, say)

    async def read(self, room: str, event: Event) -> Event | None:
        return await self._run(self._decrypt, room, event)

    async def write(self, room: str, kind: str, content: Event) -> tuple[str, Event]:
        if self._olm is None:
            raise NotNow("The keys are not there yet.")
        users = sorted(await self._rooms.people(room))
        async with self._writing[room]:
            await self._devices.know(users)
            await self._devices.share(room, users)
            made: dict[str, Any] = await self._run(
                self._olm.group_encrypt, room, {"type": kind, "content": dict(content)}
            )
        if "m.relates_to" in content:  # Homeservers must see what belongs together.
            made["m.relates_to"] = content["m.relates_to"]
        return ENCRYPTED, made

    def lock(self, content: bytes) -> tuple[bytes, Event]:
        made, keys = libraries.nio.crypto.attachments.encrypt_attachment(content)
        return bytes(made), dict(keys)

    def unlock(self, content: bytes, keys: Event) -> bytes:
        key, digest = text(inside(keys, "key").get("k")), text(inside(keys, "hashes").get("sha256"))
        try:
            return bytes(
                libraries.nio.crypto.attachments.decrypt_attachment(content, key, digest, text(keys.get("iv")))
            )
        except (libraries.nio.EncryptionError, TypeError, ValueError) as error:
            raise NeverHere("The file cannot be decrypted.") from error

    async def close(self) -> None:
        await self._answering.close()
        await self._devices.close()
        if not self._closed:
            self._closed = True  # What is still done for somebody who was cancelled comes first.
            await asyncio.get_running_loop().run_in_executor(self._thread, self._shut)
            self._thread.shutdown(wait=False)

    def _shut(self) -> None:
        if self._olm is not None:
            self._olm.store.database.close()
            self._devices.olm = None

    async def _run(self, do: Callable[..., T], *given: object) -> T:
        if self._closed:
            raise NotNow("The channel was closed.")
        return await asyncio.get_running_loop().run_in_executor(self._thread, do, *given)

    def _open(self, user: str, device: str) -> None:
        self._devices.nio = libraries.nio
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._olm is not None:
            self._olm.store.database.close()
        store = libraries.nio.store.SqliteStore(user, device, str(self._folder))
        self._devices.olm = machine()(user, device, store)

    def _learn(self, found: Event) -> None:
        """Process keys sent to this device, changed device lists, and the number of one-time keys left."""
        for event in tables(inside(found, "to_device").get("events")):
            mark = hashlib.sha256(json.dumps(event, sort_keys=True).encode()).digest()
            if not self._seen.get(mark):
                self._hear(event)
            self._seen.put(mark, True)
        changed = inside(found, "device_lists").get("changed")
        if isinstance(changed, list):
            self._devices.changed({text(user) for user in changed})
        if "device_one_time_keys_count" in found:
            self._olm.uploaded_key_count = count(inside(found, "device_one_time_keys_count").get(SIGNED))
        self._olm.collect_key_requests()

    def _hear(self, event: Event) -> None:
        """Process an untrusted to-device event."""
        if text(event.get("type")).startswith(PREFIX):
            self._asked.append(event)
            return
        try:
            parsed = self._devices.nio.ToDeviceEvent.parse_event(event)
            if isinstance(parsed, self._devices.nio.ToDeviceEvent):
                self._olm.handle_to_device_event(parsed)
        except (self._devices.nio.EncryptionError, self._devices.nio.LocalProtocolError, *WRONG) as error:
            log.warning("matrix: what %s sent to this device is passed over: %s", event.get("sender"), error)

    def _decrypt(self, room: str, event: Event) -> Event | None:
        try:
            parsed = self._devices.nio.MegolmEvent.from_dict(dict(event))
            if not isinstance(parsed, self._devices.nio.MegolmEvent):
                return None
            parsed.room_id = room
            if not self._olm.inbound_group_store.get(room, parsed.sender_key, parsed.session_id):
                self._request_key(parsed)
            opened: Mapping[str, Any] = self._olm.decrypt_megolm_event(parsed).source
        except (self._devices.nio.EncryptionError, *WRONG) as error:
            log.warning("matrix: a message in %s cannot be read: %s", room, error)
            return None
        return opened

    def _request_key(self, event: Any) -> None:  # noqa: ANN401  matrix-nio's
        """Request a message's key from the sending device, once."""
        queued = {getattr(each, "request_id", "") for each in self._olm.outgoing_to_device_messages}
        if event.session_id not in {*queued, *self._olm.outgoing_key_requests}:
            asked = event.as_key_request(event.sender, self._who[1], event.session_id, event.device_id or "*")
            self._olm.outgoing_to_device_messages.append(asked)

    async def _exchange(self) -> None:
        """Upload keys and send pending to-device messages."""
        await self._vouching.check(*self._who, self._fingerprint)
        await self._devices.upload()
        await self._vouching.vouch(*self._who, self._fingerprint, partial(self._run, self._olm.sign_json))
        await self._devices.send_pending()

    @property
    def _olm(self) -> Any:  # noqa: ANN401  matrix-nio's
        return self._devices.olm

    @property
    def _who(self) -> Device:
        return self._devices.who

    @property
    def _fingerprint(self) -> str:
        return str(self._olm.account.identity_keys["ed25519"])

    def _own(self) -> Party:
        """This device with the keys it vouches for."""
        user, device = self._who
        own = {f"ed25519:{device}": self._fingerprint}
        if (keys := self._vouching.keys) is not None:
            own[f"ed25519:{keys.public('master')}"] = keys.public("master")
        return Party(user=user, device=device, keys=own)


TAKE = "_handle_forwarded_room_key_event"


def machine() -> Any:  # noqa: ANN401  another library's
    """The crypto engine's class, extended: nio accepts requested keys only from verified devices of its own account.
    A key that a device forwards for its own session is as trustworthy as one sent unasked, since the Olm channel
    identifies the device."""
    base: Any = libraries.nio.crypto.Olm

    def take(self: Any, sender: str, sender_key: str, payload: dict[str, Any]) -> Any:  # noqa: ANN401  that library's
        content = table(payload.get("content"))
        asked = self.outgoing_key_requests.get(text(content.get("session_id")))
        named = (text(content.get("room_id")), text(content.get("algorithm")))
        if asked is None or (asked.room_id, asked.algorithm) != named or content.get("sender_key") != sender_key:
            return getattr(base, TAKE)(self, sender, sender_key, payload)
        signer, key = text(inside(payload, "keys").get("ed25519")), text(content.get("session_key"))
        session = self._import_group_session(key, signer, sender_key, asked.room_id, [])
        if session and self.inbound_group_store.add(session):
            self.save_inbound_group_session(session)
            self.outgoing_key_requests.pop(asked.session_id)
            self.store.remove_outgoing_key_request(asked)
        return None

    return type("Machine", (base,), {TAKE: take})
