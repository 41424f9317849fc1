"""People's devices: which there are, keys of them, and the keys of what the agent writes, given to each."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from hermes_agent.gateway.channel import ChannelError
from hermes_agent.gateway.matrix.client import Client, Event, inside, joined, once
from hermes_agent.host.tasks import spawn

log = logging.getLogger(__name__)

ENCRYPTED = "m.room.encrypted"
SIGNED = "signed_curve25519"
ASKED = 250
"""People whose keys are asked for in one request."""
PATIENCE_MILLISECONDS = 5000
"""How long the homeserver may ask other servers for keys; what is written in a room waits for those of its people."""
WRONG = (ValueError, TypeError, AttributeError, LookupError, OverflowError, AssertionError, StopIteration)
"""What the machine raises, besides its own errors, of keys and messages that anybody may have written as they like."""
Device = tuple[str, str]
"""A person's id and the id of one of their devices."""


class Devices:
    """What the machine `olm` of the device `who` is told of others. What reads or changes that is done by `run`, step
    by step in its thread; requests, which last as long as anybody's server likes, are no steps. Nothing is called
    before `olm` is set."""

    def __init__(self, client: Client, run: Callable[..., Awaitable[Any]]) -> None:
        self._client = client
        self._run = run
        self.nio: Any = None
        self.olm: Any = None
        self.who: Device = ("", "")
        self._shared: dict[str, set[Device]] = {}
        self._keyless: set[Device] = set()
        self._steps: Counter[str] = Counter()
        self._notices = asyncio.Lock()
        self._refreshing: asyncio.Task[None] | None = None

    def has(self, user: str) -> bool:
        """Whether any device of somebody is known."""
        store = self.olm.device_store
        return user in store.users and any(not each.deleted for each in tuple(store[user].values()))

    async def key_of(self, user: str, device: str) -> str:
        """The public key that a device signs with, asked for where it is not known; empty where nobody says it."""
        if not (key := await self._run(self._key_of, user, device)):
            try:
                await self.query([user])
            except ChannelError as error:
                log.warning("matrix: the keys of %s are not known: %s", user, error)
            key = await self._run(self._key_of, user, device)
        return str(key)

    def _key_of(self, user: str, device: str) -> str:
        known = self.olm.device_store.active_user_devices(user) if user in self.olm.device_store.users else ()
        return next((str(each.ed25519) for each in known if each.id == device), "")

    def changed(self, users: Collection[str]) -> None:
        """The devices of people are others now. Called in the thread."""
        self._steps.update(users)
        self.olm.add_changed_users(self.olm.tracked_users.intersection(users))

    def refresh(self) -> None:
        """Ask, beside everything else, for the devices of whose were changed, and begin anew where a session broke."""
        olm = self.olm
        if not (olm.users_for_key_query or olm.wedged_devices or olm.key_request_devices_no_session):
            return
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = spawn(self._refresh(), name="matrix devices")

    async def _refresh(self) -> None:
        try:
            await self.query(await self._run(self.olm.users_for_key_query.copy))
            await self.claim(await self._run(self._broken))
            await self.send_pending()
        except ChannelError as error:
            log.warning("matrix: whose devices were changed is asked later: %s", error)

    def _broken(self) -> Mapping[str, Sequence[str]]:
        if not (self.olm.wedged_devices or self.olm.key_request_devices_no_session):
            return {}
        wanted: Mapping[str, Sequence[str]] = self.olm.get_users_for_key_claiming()
        return wanted

    async def close(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait((self._refreshing,))

    async def know(self, users: Collection[str]) -> None:
        """Know the devices of people, and be able to write to each."""
        await self.query(await self._run(self._unknown, users))
        await self.claim(await self._run(self._missing, users))

    def _unknown(self, users: Collection[str]) -> set[str]:
        return {user for user in users if user in self.olm.users_for_key_query or user not in self.olm.tracked_users}

    def _missing(self, users: Collection[str]) -> dict[str, list[str]]:
        """The devices of people to which nothing can be written yet, without those that had no key left."""
        missing = self.olm.get_missing_sessions(list(users))
        return {user: [each for each in ids if (user, each) not in self._keyless] for user, ids in missing.items()}

    async def share(self, room: str, users: Collection[str]) -> None:
        """Give every device in a room the key of what is written there; another key since somebody came or went."""
        session, messages = await self._run(self._keys, room, users)
        for given, message in messages:
            await self.send(message["messages"], ENCRYPTED)
            session.users_shared_with.update(given)
        session.shared = True

    def _keys(self, room: str, users: Collection[str]) -> tuple[Any, list[tuple[set[Device], dict[str, Any]]]]:
        """The session of what is written in a room, and what is to be sent for it before anything is."""
        known = [each for user in users for each in self.olm.device_store.active_user_devices(user)]
        devices = {(each.user_id, each.id) for each in known if self.olm.session_store.get(each.curve25519)}
        messages = []
        if self._shared.get(room) != devices or self.olm.should_share_group_session(room):
            messages = list(self.olm.share_group_session_parallel(room, list(users), ignore_unverified_devices=True))
            self._shared[room] = devices
        return self.olm.outbound_group_sessions[room], messages

    async def query(self, users: Iterable[str]) -> None:
        """Ask for the devices of people."""
        for some in _pieces(users):
            steps = {user: self._steps[user] for user in some}
            wanted = {"device_keys": {user: [] for user in some}, "timeout": PATIENCE_MILLISECONDS}
            await self._run(self._update_devices, steps, await self._asked("query", wanted))

    def _update_devices(self, steps: Mapping[str, int], answer: Event) -> None:
        """Take in what is said of people's devices, who had been changed so often when it was asked. Of whom that
        happened again since, what is known may be newer."""
        again = {user for user, step in steps.items() if self._steps[user] != step}
        wanted = steps.keys() - (again & self.olm.tracked_users)
        self._take_each("device_keys", self.nio.KeysQueryResponse, answer, wanted)
        # Whose server does not answer is asked for again when something is written to them, not with every sync.
        self.olm.users_for_key_query -= steps.keys() - self.olm.tracked_users
        self.olm.users_for_key_query |= again

    async def claim(self, wanted: Mapping[str, Sequence[str]]) -> None:
        """Ask for a key of each device, to begin a session with it. One that has none is not asked for again; one whose
        server does not answer is when something is written to it."""
        for some in _pieces(user for user, devices in wanted.items() if devices):
            asked = {user: dict.fromkeys(wanted[user], SIGNED) for user in some}
            answer = await self._asked("claim", {"one_time_keys": asked, "timeout": PATIENCE_MILLISECONDS})
            await self._run(self._claimed, asked, answer)

    def _claimed(self, asked: Mapping[str, Mapping[str, str]], answer: Event) -> None:
        self._take_each("one_time_keys", self.nio.KeysClaimResponse, answer, asked.keys())
        answered = [user for user in asked if user.partition(":")[2] not in inside(answer, "failures")]
        missing = self.olm.get_missing_sessions(answered)
        self._keyless |= {(user, each) for user in missing for each in asked[user].keys() & set(missing[user])}

    async def upload(self) -> None:
        """Give the homeserver keys of this device that it has not."""
        if self.olm.should_upload_keys:
            answer = await self._asked("upload", await self._run(self.olm.share_keys))
            await self._run(self._take, self.nio.KeysUploadResponse, answer)

    async def _asked(self, what: str, content: Event) -> Event:
        return await self._client.call("POST", f"keys/{what}", content, reads=True)

    def _take_each(self, name: str, kind: Any, answer: Event, users: Set[str]) -> None:  # noqa: ANN401  matrix-nio's
        """Have the machine take in what stands there of each of these people, any of whom may have written nonsense."""
        with self.olm.store.database.atomic():  # A commit for each takes 20 ms.
            for user in inside(answer, name).keys() & users:
                self._take(kind, {name: {user: answer[name][user]}})

    def _take(self, kind: Any, answer: Event) -> None:  # noqa: ANN401  matrix-nio's
        """Have the machine take in what the homeserver says about keys."""
        try:
            self.olm.handle_response(kind.from_dict(answer))
        except (self.nio.EncryptionError, self.nio.LocalProtocolError, *WRONG) as error:
            log.warning("matrix: keys of people are passed over: %s", error)

    async def send_pending(self) -> None:
        """Send what the machine has to say to devices."""
        async with self._notices:
            for message in list(self.olm.outgoing_to_device_messages):
                await self.send({message.recipient: {message.recipient_device: message.content}}, message.type)
                await self._run(self.olm.handle_response, self.nio.ToDeviceResponse(message))

    async def send(self, messages: Mapping[str, Any], kind: str) -> None:
        """Send to devices, by user and device."""
        await self._client.call("PUT", joined("sendToDevice", kind, once()), {"messages": messages}, reads=True)


def _pieces(users: Iterable[str]) -> Iterator[list[str]]:
    """As many people as are asked for in one request."""
    ordered = sorted(users)
    return (ordered[at : at + ASKED] for at in range(0, len(ordered), ASKED))
