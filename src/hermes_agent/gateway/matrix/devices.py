"""People's devices: which there are, keys of them, and the keys of what the agent writes, given to each."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from hermes_agent.gateway.matrix.client import Client, joined
from hermes_agent.gateway.matrix.shapes import Event, inside, text
from hermes_agent.gateway.matrix.writing import once
from hermes_agent.host.late import late

log = logging.getLogger(__name__)

ENCRYPTED = "m.room.encrypted"
SIGNED = "signed_curve25519"
ASKED = 250
"""People whose keys are asked for in one request."""
PATIENCE_MILLISECONDS = 5000
"""How long the homeserver may ask other servers for keys; nothing is heard meanwhile."""
WRONG = (ValueError, TypeError, AttributeError, LookupError, OverflowError, AssertionError)
"""What the machine raises, besides its own errors, of keys and messages that anybody may have written as they like."""
Device = tuple[str, str]
"""A person's id and the id of one of their devices."""


class Devices:
    """What the machine `olm` of the device `who` is told of others; `run` does something in its thread. Nothing is
    called before `olm` is set."""

    def __init__(self, client: Client, run: Callable[..., Awaitable[Any]]) -> None:
        self._client = client
        self._run = run
        self.nio: Any = None
        self.olm: Any = None
        self.who: Device = ("", "")
        self._shared: dict[str, set[Device]] = {}
        self._keyless: set[Device] = set()

    def has(self, user: str) -> bool:
        """Whether any device of somebody is known."""
        store = self.olm.device_store
        return user in store.users and any(True for _ in store.active_user_devices(user))

    async def kept_keys(self, devices: Iterable[Device]) -> dict[Device, str]:
        """The public keys that devices sign with, of those that are known."""
        kept: dict[Device, str] = await self._run(self._kept_keys, frozenset(devices))
        return kept

    def _kept_keys(self, devices: frozenset[Device]) -> dict[Device, str]:
        known = [user for user in {user for user, _ in devices} if user in self.olm.device_store.users]
        found = [each for user in known for each in self.olm.device_store.active_user_devices(user)]
        return {(each.user_id, each.id): str(each.ed25519) for each in found if (each.user_id, each.id) in devices}

    async def keys_of(self, devices: Iterable[Device]) -> dict[Device, str]:
        """The same of devices that are not known, as far as the homeserver says. The machine is told nothing of them,
        so that this may go on beside everything else, however long it takes."""
        asked: dict[str, list[str]] = {}
        for user, device in devices:
            asked.setdefault(user, []).append(device)
        wanted = {"device_keys": asked, "timeout": PATIENCE_MILLISECONDS}
        answer = await self._client.call("POST", "keys/query", wanted, reads=True)
        found = {(user, id_): inside(answer, "device_keys", user, id_) for user, ids in asked.items() for id_ in ids}
        keys: dict[Device, str] = await self._run(self._signed, found)
        return keys

    def _signed(self, found: Mapping[Device, Event]) -> dict[Device, str]:
        """The keys of those that say of themselves which device they are."""
        signed = {}
        for (user, device), each in found.items():
            key = text(inside(each, "keys").get(f"ed25519:{device}"))
            if (each.get("user_id"), each.get("device_id")) != (user, device) or not key:
                continue
            try:
                if self.olm.verify_json(dict(each), key, user, device):
                    signed[user, device] = key
            except (self.nio.EncryptionError, late("vodozemac:KeyException"), *WRONG) as error:
                log.warning("matrix: keys of %s are passed over: %s", user, error)
        return signed

    async def know(self, users: Iterable[str]) -> None:
        """Know the devices of people, and be able to write to each."""
        self.olm.users_for_key_query.update(set(users) - self.olm.tracked_users)
        if self.olm.users_for_key_query:
            await self.query()
        missing = self.olm.get_missing_sessions(list(users))
        wanted = {
            user: [device for device in devices if (user, device) not in self._keyless]
            for user, devices in missing.items()
        }
        if any(wanted.values()):
            await self.claim(wanted)
            self._keyless |= {
                (user, each) for user, ids in self.olm.get_missing_sessions(list(users)).items() for each in ids
            }

    async def share(self, room: str, users: Iterable[str]) -> None:
        """Give every device in a room the key of what is written there; another key since somebody came or went."""
        devices = {
            (user, device.id) for user in users for device in self.olm.device_store.active_user_devices(user)
        } - {self.who}
        if self._shared.get(room) == devices and not self.olm.should_share_group_session(room):
            return
        self._shared.pop(room, None)
        for given, message in await self._run(self._keys, room, list(users)):
            await self.send(message["messages"], ENCRYPTED)
            self.olm.outbound_group_sessions[room].users_shared_with.update(given)
        self.olm.outbound_group_sessions[room].shared = True
        self._shared[room] = devices

    def _keys(self, room: str, users: list[str]) -> list[tuple[set[Device], dict[str, Any]]]:
        return list(self.olm.share_group_session_parallel(room, users, ignore_unverified_devices=True))

    async def query(self) -> None:
        """Ask for the devices of whom that is wanted."""
        users = sorted(self.olm.users_for_key_query)
        for at in range(0, len(users), ASKED):
            asked: dict[str, list[str]] = {user: [] for user in users[at : at + ASKED]}
            wanted = {"device_keys": asked, "timeout": PATIENCE_MILLISECONDS}
            await self.ask("query", wanted, self.nio.KeysQueryResponse.from_dict)
        # Whose server does not answer is asked for again when something is written to them, not with every sync.
        self.olm.users_for_key_query.intersection_update(self.olm.tracked_users)

    async def claim(self, wanted: Mapping[str, Iterable[str]]) -> None:
        """Ask for a key of each device, to begin a session with it."""
        asked = {user: dict.fromkeys(devices, SIGNED) for user, devices in wanted.items() if devices}
        users = sorted(asked)
        for at in range(0, len(users), ASKED):
            some = {user: asked[user] for user in users[at : at + ASKED]}
            content = {"one_time_keys": some, "timeout": PATIENCE_MILLISECONDS}
            await self.ask("claim", content, self.nio.KeysClaimResponse.from_dict)

    async def ask(self, what: str, content: Mapping[str, Any], read: Callable[[Any], Any]) -> None:
        """Ask the homeserver about keys, and have the machine take in what it answers."""
        answer = await self._client.call("POST", f"keys/{what}", content, reads=True)
        try:
            await self._run(self.olm.handle_response, read(answer))
        except (self.nio.EncryptionError, self.nio.LocalProtocolError, *WRONG) as error:
            log.warning("matrix: keys of people are passed over (%s): %s", what, error)

    async def send(self, messages: Mapping[str, Any], kind: str) -> None:
        """Send to devices, by user and device."""
        await self._client.call("PUT", joined("sendToDevice", kind, once()), {"messages": messages}, reads=True)
