"""Encrypted rooms: Olm and Megolm by matrix-nio's machine, whose keys are files of this home, over our own requests."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from hermes_agent.gateway.channel import MessageGone, NeverHere, NotNow
from hermes_agent.gateway.matrix.attachments import locked, unlocked
from hermes_agent.gateway.matrix.client import Client, joined
from hermes_agent.gateway.matrix.shapes import Event, count, inside, tables, text
from hermes_agent.gateway.matrix.verifying import PREFIX, Party, Reply, Verifying, way_of
from hermes_agent.gateway.matrix.vouching import Vouching
from hermes_agent.gateway.matrix.writing import once
from hermes_agent.host.late import late

log = logging.getLogger(__name__)

T = TypeVar("T")
KEYLESS = "I cannot read what was written here: its key did not reach me. Write it again, please."
KEY_SECONDS = 20.0
"""How long a message's key may come after it; it is asked for meanwhile."""
ENCRYPTED = "m.room.encrypted"
SIGNED = "signed_curve25519"
ASKED = 250
"""People whose keys are asked for in one request."""
SEEN = 1000
"""Messages to this device that are remembered, since what a sync told may be told again."""
WRONG = (ValueError, TypeError, AttributeError, LookupError, OverflowError, AssertionError)
"""What the machine raises, besides its own errors, of keys and messages that anybody may have written as they like."""
Device = tuple[str, str]
"""A person's id and the id of one of their devices."""


class Opened:
    """A `Crypto` for one device. Everything that its machine does is done in one thread, one thing after the other.

    The keys are kept in `folder`; another one knows nothing of them. The account vouches for its device, and people may
    verify it; the agent verifies nobody: whoever the homeserver says is in a room is given the keys of what the agent
    writes there. `people` tells who that is; `note` is told what people compare.
    """

    excuse = KEYLESS
    patience = KEY_SECONDS

    def __init__(
        self,
        client: Client,
        folder: Path,
        people: Callable[[str], Awaitable[Iterable[str]]],
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._folder = folder
        self._people = people
        self._nio: Any = None
        self._olm: Any = None
        self._who: Device = ("", "")
        self._alone = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="olm")
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._shared: dict[str, set[Device]] = {}
        self._keyless: set[Device] = set()
        self._vouching = Vouching(client, folder, note)
        self._verifying = Verifying()
        self._asked: list[Event] = []

    async def begin(self, user: str, device: str) -> None:
        if not device:
            raise NotNow("MATRIX_ACCESS_TOKEN belongs to no device, so nothing can be encrypted for it: log in anew.")
        async with self._alone:
            if self._who != (user, device):
                await self._run(self._open, user, device)
                self._who = (user, device)

    async def synced(self, found: Event) -> None:
        async with self._alone:
            await self._run(self._learn, found)
            with suppress(NeverHere, MessageGone):
                await self._exchange()
            while self._asked:
                with suppress(NeverHere, MessageGone):
                    await self._answer(self._asked.pop(0))

    async def verify(self, event: Event) -> Sequence[Reply]:
        async with self._alone:
            if self._olm is None:
                return ()
            with suppress(NeverHere, MessageGone):
                return await self._verified(event)
        return ()

    async def read(self, room: str, event: Event) -> Event | None:
        async with self._alone:
            return await self._run(self._decrypt, room, event)

    async def write(self, room: str, kind: str, content: Event) -> tuple[str, Event]:
        users = sorted(await self._people(room))
        async with self._alone:
            if self._olm is None:
                raise NotNow("The keys are not there yet.")
            await self._know(users)
            await self._share(room, users)
            made = await self._run(self._olm.group_encrypt, room, {"type": kind, "content": dict(content)})
        if "m.relates_to" in content:  # Homeservers must see what belongs together.
            made["m.relates_to"] = content["m.relates_to"]
        return ENCRYPTED, made

    def lock(self, content: bytes) -> tuple[bytes, Event]:
        return locked(content)

    def unlock(self, content: bytes, keys: Event) -> bytes:
        return unlocked(content, keys)

    async def close(self) -> None:
        async with self._alone:
            if self._olm is not None:
                await self._run(self._olm.store.database.close)
                self._olm = None
            self._thread.shutdown()

    async def _run(self, do: Callable[..., T], *given: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, do, *given)

    def _open(self, user: str, device: str) -> None:
        self._nio = late("nio")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._olm is not None:
            self._olm.store.database.close()
        store = late("nio.store:SqliteStore")(user, device, str(self._folder))
        self._olm = late("nio.crypto:Olm")(user, device, store)

    def _learn(self, found: Event) -> None:
        """Take in keys that were sent to this device, whose devices changed, and how many of its keys are left."""
        for event in tables(inside(found, "to_device").get("events")):
            mark = json.dumps(event, sort_keys=True)
            if mark not in self._seen:
                self._hear(event)
            self._seen[mark] = None
        while len(self._seen) > SEEN:
            self._seen.popitem(last=False)
        changed = inside(found, "device_lists").get("changed")
        if isinstance(changed, list):
            self._olm.add_changed_users({text(user) for user in changed} & self._olm.tracked_users)
        if "device_one_time_keys_count" in found:
            self._olm.uploaded_key_count = count(inside(found, "device_one_time_keys_count").get(SIGNED))
        self._olm.collect_key_requests()

    def _hear(self, event: Event) -> None:
        """Take in what somebody, whoever it is, sent to this device."""
        if text(event.get("type")).startswith(PREFIX):
            self._asked.append(event)
            return
        try:
            parsed = self._nio.ToDeviceEvent.parse_event(event)
            if isinstance(parsed, self._nio.ToDeviceEvent):
                self._olm.handle_to_device_event(parsed)
        except (self._nio.EncryptionError, self._nio.LocalProtocolError, *WRONG) as error:
            log.warning("matrix: what %s sent to this device is passed over: %s", event.get("sender"), error)

    def _decrypt(self, room: str, event: Event) -> Event | None:
        try:
            parsed = self._nio.MegolmEvent.from_dict(dict(event))
            if not isinstance(parsed, self._nio.MegolmEvent):
                return None
            parsed.room_id = room
            opened: Mapping[str, Any] = self._olm.decrypt_megolm_event(parsed).source
        except (self._nio.EncryptionError, *WRONG) as error:
            log.warning("matrix: a message in %s cannot be read: %s", room, error)
            return None
        return opened

    async def _exchange(self) -> None:
        """Give the homeserver keys that it has not, ask for those of people, begin anew where a session broke."""
        await self._vouching.check(*self._who, self._fingerprint)
        if self._olm.should_upload_keys:
            content = await self._run(self._olm.share_keys)
            await self._ask("upload", content, self._nio.KeysUploadResponse.from_dict)
        await self._vouching.vouch(*self._who, self._fingerprint, partial(self._run, self._olm.sign_json))
        if self._olm.users_for_key_query:
            await self._query()
        if self._olm.wedged_devices or self._olm.key_request_devices_no_session:
            wanted = self._olm.get_users_for_key_claiming()
            await self._claim(wanted)
        for message in list(self._olm.outgoing_to_device_messages):
            await self._send({message.recipient: {message.recipient_device: message.content}}, message.type)
            sent = self._nio.ToDeviceResponse(message)
            await self._run(self._olm.handle_response, sent)

    @property
    def _fingerprint(self) -> str:
        return str(self._olm.account.identity_keys["ed25519"])

    async def _answer(self, event: Event) -> None:
        """Answer somebody who verifies this device, from device to device."""
        sender, mark = text(event.get("sender")), way_of(event)[0]
        device = text(inside(event, "content").get("from_device")) or self._verifying.device_of(sender, mark)
        for kind, content in await self._verified(event):
            if device:
                await self._send({sender: {device: content}}, kind)

    async def _verified(self, event: Event) -> Sequence[Reply]:
        """What is answered to somebody who verifies this device."""
        (user, device), other = self._who, text(event.get("sender"))
        named = text(inside(event, "content").get("from_device"))
        own = {f"ed25519:{device}": self._fingerprint}
        if (keys := self._vouching.keys) is not None:
            own[f"ed25519:{keys.public('master')}"] = keys.public("master")
        theirs = await self._device(other, named) if named else ""
        return self._verifying.hear(
            Party(user=user, device=device, keys=own),
            Party(user=other, device=named, keys={f"ed25519:{named}": theirs} if theirs else {}),
            event,
        )

    async def _device(self, user: str, device: str) -> str:
        """The public key that a device signs with; empty where the homeserver knows of none."""
        for asked in (False, True):
            if asked:
                self._olm.users_for_key_query.add(user)
                await self._query()
            for each in self._olm.device_store.active_user_devices(user):
                if each.id == device:
                    return str(each.ed25519)
        return ""

    async def _know(self, users: Iterable[str]) -> None:
        """Know the devices of people, and be able to write to each."""
        self._olm.users_for_key_query.update(set(users) - self._olm.tracked_users)
        if self._olm.users_for_key_query:
            await self._query()
        missing = self._olm.get_missing_sessions(list(users))
        wanted = {
            user: [device for device in devices if (user, device) not in self._keyless]
            for user, devices in missing.items()
        }
        if any(wanted.values()):
            await self._claim(wanted)
            self._keyless |= {
                (user, each) for user, ids in self._olm.get_missing_sessions(list(users)).items() for each in ids
            }

    async def _share(self, room: str, users: Iterable[str]) -> None:
        """Give every device in a room the key of what is written there; another key since somebody came or went."""
        devices = {
            (user, device.id) for user in users for device in self._olm.device_store.active_user_devices(user)
        } - {self._who}
        if self._shared.get(room) == devices and not self._olm.should_share_group_session(room):
            return
        self._shared.pop(room, None)
        for given, message in await self._run(self._keys, room, list(users)):
            await self._send(message["messages"], ENCRYPTED)
            self._olm.outbound_group_sessions[room].users_shared_with.update(given)
        self._olm.outbound_group_sessions[room].shared = True
        self._shared[room] = devices

    def _keys(self, room: str, users: list[str]) -> list[tuple[set[Device], dict[str, Any]]]:
        return list(self._olm.share_group_session_parallel(room, users, ignore_unverified_devices=True))

    async def _query(self) -> None:
        users = sorted(self._olm.users_for_key_query)
        for at in range(0, len(users), ASKED):
            asked: dict[str, list[str]] = {user: [] for user in users[at : at + ASKED]}
            await self._ask("query", {"device_keys": asked}, self._nio.KeysQueryResponse.from_dict)

    async def _claim(self, wanted: Mapping[str, Iterable[str]]) -> None:
        asked = {user: dict.fromkeys(devices, SIGNED) for user, devices in wanted.items() if devices}
        users = sorted(asked)
        for at in range(0, len(users), ASKED):
            some = {user: asked[user] for user in users[at : at + ASKED]}
            await self._ask("claim", {"one_time_keys": some}, self._nio.KeysClaimResponse.from_dict)

    async def _ask(self, what: str, content: Mapping[str, Any], read: Callable[[Any], Any]) -> None:
        answer = await self._client.call("POST", f"keys/{what}", content, reads=True)
        try:
            await self._run(self._olm.handle_response, read(answer))
        except (self._nio.EncryptionError, self._nio.LocalProtocolError, *WRONG) as error:
            log.warning("matrix: keys of people are passed over (%s): %s", what, error)

    async def _send(self, messages: Mapping[str, Any], kind: str) -> None:
        await self._client.call("PUT", joined("sendToDevice", kind, once()), {"messages": messages}, reads=True)
