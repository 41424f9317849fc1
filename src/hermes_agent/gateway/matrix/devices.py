"""Matrix device keys: queries people's devices, opens Olm sessions, and shares room keys with them."""

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
    """Keeps the crypto engine `olm` of device `who` up to date about the devices of other people. `run` executes each
    access to `olm` in the engine's thread; HTTP requests run outside it. Requires `olm` to be set."""

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

    def changed(self, users: Collection[str]) -> None:
        """Mark users whose devices changed. Runs in the thread."""
        self._steps.update(users)
        self.olm.add_changed_users(self.olm.tracked_users.intersection(users))

    def refresh(self) -> None:
        """Query changed devices in the background, and restart broken sessions."""
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
        """Ensure that the users' devices are known and have sessions."""
        await self.query(await self._run(self._unknown, users))
        await self.claim(await self._run(self._missing, users))

    def _unknown(self, users: Collection[str]) -> set[str]:
        return {user for user in users if user in self.olm.users_for_key_query or user not in self.olm.tracked_users}

    def _missing(self, users: Collection[str]) -> dict[str, list[str]]:
        """Devices without a session, except those that had no one-time key left."""
        missing = self.olm.get_missing_sessions(list(users))
        return {user: [each for each in ids if (user, each) not in self._keyless] for user, ids in missing.items()}

    async def share(self, room: str, users: Collection[str]) -> None:
        """Share the room's message key with every device; a new key if members or devices changed."""
        session, messages = await self._run(self._keys, room, users)
        for given, message in messages:
            await self.send(message["messages"], ENCRYPTED)
            session.users_shared_with.update(given)
        session.shared = True

    def _keys(self, room: str, users: Collection[str]) -> tuple[Any, list[tuple[set[Device], dict[str, Any]]]]:
        """The room's outgoing session, and the key messages to send first."""
        known = [each for user in users for each in self.olm.device_store.active_user_devices(user)]
        devices = {(each.user_id, each.id) for each in known if self.olm.session_store.get(each.curve25519)}
        messages = []
        if self._shared.get(room) != devices or self.olm.should_share_group_session(room):
            messages = list(self.olm.share_group_session_parallel(room, list(users), ignore_unverified_devices=True))
            self._shared[room] = devices
        return self.olm.outbound_group_sessions[room], messages

    async def query(self, users: Iterable[str]) -> None:
        """Query the devices of users."""
        for some in _pieces(users):
            steps = {user: self._steps[user] for user in some}
            wanted = {"device_keys": {user: [] for user in some}, "timeout": PATIENCE_MILLISECONDS}
            await self._run(self._update_devices, steps, await self._asked("query", wanted))

    def _update_devices(self, steps: Mapping[str, int], answer: Event) -> None:
        """Store queried devices. Users that changed during the query are queried again."""
        again = {user for user, step in steps.items() if self._steps[user] != step}
        wanted = steps.keys() - (again & self.olm.tracked_users)
        self._take_each("device_keys", self.nio.KeysQueryResponse, answer, wanted)
        # Whose server does not answer is asked for again when something is written to them, not with every sync.
        self.olm.users_for_key_query -= steps.keys() - self.olm.tracked_users
        self.olm.users_for_key_query |= again

    async def claim(self, wanted: Mapping[str, Sequence[str]]) -> None:
        """Claim a one-time key of each device to open a session. Devices without one are not asked again; those on
        unreachable servers are, at the next message."""
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
        """Upload this device's missing keys."""
        if self.olm.should_upload_keys:
            answer = await self._asked("upload", await self._run(self.olm.share_keys))
            await self._run(self._take, self.nio.KeysUploadResponse, answer)

    async def _asked(self, what: str, content: Event) -> Event:
        return await self._client.call("POST", f"keys/{what}", content, reads=True)

    def _take_each(self, name: str, kind: Any, answer: Event, users: Set[str]) -> None:  # noqa: ANN401  matrix-nio's
        """Let the engine process each user's part of an answer separately, as any may be malformed."""
        with self.olm.store.database.atomic():  # A commit for each takes 20 ms.
            for user in inside(answer, name).keys() & users:
                self._take(kind, {name: {user: answer[name][user]}})

    def _take(self, kind: Any, answer: Event) -> None:  # noqa: ANN401  matrix-nio's
        """Let the engine process an answer about keys."""
        try:
            self.olm.handle_response(kind.from_dict(answer))
        except (self.nio.EncryptionError, self.nio.LocalProtocolError, *WRONG) as error:
            log.warning("matrix: keys of people are passed over: %s", error)

    async def send_pending(self) -> None:
        """Send the engine's pending to-device messages."""
        async with self._notices:
            for message in list(self.olm.outgoing_to_device_messages):
                await self.send({message.recipient: {message.recipient_device: message.content}}, message.type)
                await self._run(self.olm.handle_response, self.nio.ToDeviceResponse(message))

    async def send(self, messages: Mapping[str, Any], kind: str) -> None:
        """Send to-device messages, by user and device."""
        await self._client.call("PUT", joined("sendToDevice", kind, once()), {"messages": messages}, reads=True)


def _pieces(users: Iterable[str]) -> Iterator[list[str]]:
    """Batches of users for one request each."""
    ordered = sorted(users)
    return (ordered[at : at + ASKED] for at in range(0, len(ordered), ASKED))
