"""Matrix channel: the homeserver's client-server API with one access token."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from hermes_agent.core.chat import Conversation
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channel import (
    Abilities,
    Channel,
    ChannelError,
    Hear,
    Kind,
    Media,
    MessageGone,
    Needs,
    NeverHere,
    Option,
    Pace,
    Part,
    Unit,
)
from hermes_agent.gateway.chat_migration import ChatMigration
from hermes_agent.gateway.matrix.client import (
    SIGNS,
    SLOT,
    Client,
    Event,
    changed,
    file,
    joined,
    meaning,
    once,
    placed,
    reaction,
    table,
    text,
    transaction,
    words,
)
from hermes_agent.gateway.matrix.decryption import Decryption
from hermes_agent.gateway.matrix.membership import Membership, Places
from hermes_agent.gateway.matrix.rooms import PLATFORM, Crypto, Known, Reader, Rooms
from hermes_agent.gateway.matrix.sync import Sync
from hermes_agent.gateway.service import Service, bytes_of

TYPING_SECONDS = 10.0
MESSAGE, REACTION = "m.room.message", "m.reaction"


class MatrixChannel(Channel):
    """`Channel` adapter for the rooms of one Matrix account."""

    def __init__(self, needs: Needs, base: str, *, threads: bool, encryption: bool) -> None:
        headers = {"Authorization": f"Bearer {needs.secret('MATRIX_ACCESS_TOKEN')}"}
        self._client = Client(
            Service(title="The homeserver", http=needs.http, headers=headers, base=base, meaning=meaning)
        )
        self._threads = threads
        self._needs = needs
        self._rooms = Rooms(self._client)
        self._moves = ChatMigration(needs.kept, f"channel:{PLATFORM}")
        self._crypto: Crypto = (
            Decryption(self._client, needs.folder, self._rooms, needs.note) if encryption else Crypto()
        )
        self._rooms.crypto = self._crypto
        self._typing: set[str] = set()

    async def listen(self, hear: Hear) -> None:
        me = await self._client.call("GET", "account/whoami", reads=True)
        own = self._rooms.own = text(me.get("user_id"))
        await self._crypto.begin(own, text(me.get("device_id")))
        await self._crypto.synced({})  # Its keys are put up, and its owner is told of them, before anything happens.
        reader = Reader(
            own=own,
            name=await self._name(own),
            rooms=self._rooms,
            moves=self._moves,
            threads=self._threads,
        )
        places = Places(self._needs.kept, f"channel:{PLATFORM}:{own}")
        sync = Sync(
            client=self._client,
            rooms=self._rooms,
            crypto=self._crypto,
            reader=reader,
            entering=Membership(
                client=self._client, rooms=self._rooms, moves=self._moves, places=places, now=self._needs.clock.now
            ),
            places=places,
            now=self._needs.clock.now,
            excuse=self._excuse,
        )
        await sync.follow(hear)

    async def send(self, to: Conversation, part: Part, key: str) -> str:
        room = await self._moves.now(to.chat)
        content = await asyncio.to_thread(words, part) if part.file is None else await self._uploaded(room, part)
        try:
            receipt = await self._put(room, MESSAGE, placed(content, to, part.answers), transaction(key))
            self._rooms.messages.put(receipt, Known(mine=True, slot=content[SLOT], thread=to.thread))
            await self._sign(room, receipt, part, key)
        except MessageGone as error:
            raise NeverHere(str(error)) from error
        if room in self._typing:
            with suppress(ChannelError):
                await self._say_typing(room, typing=False)
        return receipt

    async def edit(self, to: Conversation, receipt: str, part: Part) -> None:
        if self._rooms.gone.get(receipt):
            raise MessageGone("Somebody took the message away.")
        if part.file is not None:
            return  # A file's words stay what they were.
        room, content, _ = await self._moves.now(to.chat), await asyncio.to_thread(words, part), await self._own()
        await self._put(room, MESSAGE, changed(content, receipt), once())
        self._rooms.messages.put(receipt, Known(mine=True, slot=content[SLOT], thread=to.thread))
        with suppress(NeverHere, MessageGone):
            if not part.buttons:
                for sign in await self._rooms.signs(room, receipt):
                    await self._redact(room, sign)
                self._rooms.known_signs.put(receipt, ())
            else:
                await self._sign(room, receipt, part, f"{receipt}:{part.slot}")

    async def delete(self, to: Conversation, receipt: str) -> None:
        await self._redact(await self._moves.now(to.chat), receipt)

    async def typing(self, to: Conversation) -> None:
        await self._say_typing(await self._moves.now(to.chat), typing=True)

    async def check(self) -> str:
        return str((await self._client.call("GET", "account/whoami", reads=True)).get("user_id", ""))

    async def close(self) -> None:
        await self._crypto.close()

    async def _put(self, room: str, kind: str, content: Event, mark: str) -> str:
        """Send an event and return its id. Reactions are never encrypted."""
        if kind != REACTION and await self._rooms.encrypted(room):
            kind, content = await self._crypto.write(room, kind, content)
        path = joined("rooms", room, "send", kind, mark)
        return str((await self._client.call("PUT", path, content))["event_id"])

    async def _sign(self, room: str, receipt: str, part: Part, key: str) -> None:
        """Add the reactions that serve as buttons to a message."""
        signs = []
        for sign, _ in zip(SIGNS, part.buttons, strict=False):
            with suppress(NeverHere, MessageGone):  # The list of choices stands in the text.
                signs.append(await self._put(room, REACTION, reaction(receipt, sign), transaction(f"{key}:{sign}")))
        self._rooms.known_signs.put(receipt, tuple(signs))

    async def _redact(self, room: str, id_: str) -> None:
        await self._client.call("PUT", joined("rooms", room, "redact", id_, transaction(f"redact {id_}")), {})

    async def _uploaded(self, room: str, part: Part) -> dict[str, Any]:
        sent = part.file
        assert sent is not None
        content = await bytes_of(sent)
        if await self._rooms.encrypted(room):
            locked, keys = await asyncio.to_thread(self._crypto.lock, content)
            address = await self._client.upload("file", "application/octet-stream", locked)
            return file(part, sent, len(content), {"file": {**keys, "url": address}})
        address = await self._client.upload(sent.name, sent.media_type, content)
        return file(part, sent, len(content), {"url": address})

    async def fetch(self, media: Media, most: int) -> bytes:
        content = table(json.loads(media.reference))
        keys = table(content.get("file"))
        if not keys:
            return await self._client.download(text(content.get("url")), most)
        locked = await self._client.download(text(keys.get("url")), most)
        if len(locked) > most:
            return locked
        return await asyncio.to_thread(self._crypto.unlock, locked, keys)

    async def _excuse(self, room: str, id_: str) -> None:
        """Reply to a message that could not be read; unencrypted if nothing can be encrypted."""
        said = {**words(Part(text=self._crypto.excuse)), "msgtype": "m.notice"}
        said["m.relates_to"] = {"m.in_reply_to": {"event_id": id_}}
        mark = transaction(f"{id_}: not read")
        try:
            await self._put(room, MESSAGE, said, mark)
        except NeverHere:
            await self._client.call("PUT", joined("rooms", room, "send", MESSAGE, mark), said)

    async def _say_typing(self, room: str, *, typing: bool) -> None:
        (self._typing.add if typing else self._typing.discard)(room)
        content: dict[str, Any] = {"typing": typing}
        if typing:
            content["timeout"] = int(TYPING_SECONDS * 1000)
        await self._client.call("PUT", joined("rooms", room, "typing", await self._own()), content, reads=True)

    async def _own(self) -> str:
        if not self._rooms.own:
            me = await self._client.call("GET", "account/whoami", reads=True)
            self._rooms.own = text(me.get("user_id"))
        return self._rooms.own

    async def _name(self, own: str) -> str:
        try:
            found = await self._client.call("GET", joined("profile", own, "displayname"), reads=True)
        except (NeverHere, MessageGone):
            return ""
        return text(found.get("displayname"))


def make(needs: Needs) -> Channel:
    """Factory of the Matrix channel. Raises `ConfigError`."""
    if find_spec("markdown_it") is None:
        raise ConfigError("Matrix needs a package: pip install 'hermes-runtime[matrix]'.")
    options = {name: needs.options.get(name) or option.default for name, option in OPTIONS.items()}
    base = options["homeserver"].rstrip("/")
    if not base.startswith(("https://", "http://")):
        raise ConfigError(
            "gateway.channels.matrix.options.homeserver is the address of the homeserver, as https://matrix.example.org."
        )
    if not needs.secret("MATRIX_ACCESS_TOKEN"):
        raise ConfigError("MATRIX_ACCESS_TOKEN is missing: the access token of the agent's account.")
    for name in ("threads", "encryption"):
        if options[name] not in ("yes", "no"):
            raise ConfigError(f"gateway.channels.matrix.options.{name} is `yes` or `no`.")
    encryption = options["encryption"] == "yes"
    if encryption and (find_spec("nio") is None or find_spec("vodozemac") is None):
        raise ConfigError(f"Encrypted rooms need a package: {sys.executable} -m pip install 'matrix-nio[e2e]'.")
    return MatrixChannel(needs, base, threads=options["threads"] == "yes", encryption=encryption)


OPTIONS = {
    "homeserver": Option(doc="Address of the homeserver's client API, as https://matrix.example.org.", asked=True),
    "encryption": Option(
        doc="Whether encrypted rooms are read and written (`yes`, `no`): `yes` needs `hermes-runtime[matrix-e2ee]`.",
        default="no",
    ),
    "threads": Option(doc="What is said to the agent in a group begins a thread (`yes`, `no`).", default="no"),
}

CHANNEL = Kind(
    name=PLATFORM,
    title="Matrix",
    abilities=Abilities(
        longest_message=16_000,
        unit=Unit.BYTES,
        edit=True,
        delete=True,
        threads=True,
        buttons=len(SIGNS),
        typing=TYPING_SECONDS,
        largest_file=50_000_000,
        keyed=1800.0,  # Synapse forgets the ids of transactions after half an hour.
        hears_edits=True,
        fences=True,
    ),
    # Synapse's own limit (rc_message): 0.2 events a second after the first ten; edits count.
    pace=Pace(every=0.05, chat=0.5, group=0.5, edit=5.0),
    secrets=("MATRIX_ACCESS_TOKEN",),
    person=(r"@[^:\s]+:\S+", "it is like @you:example.org"),
    setup=(
        "Register an account for the agent on a homeserver, and put the homeserver's address into "
        "gateway.channels.matrix.options.homeserver.",
        'Log in once for its access token: curl -d \'{"type":"m.login.password","identifier":{"type":'
        '"m.id.user","user":"hermes"},"password":"..."}\' HOMESERVER/_matrix/client/v3/login; that is the '
        "MATRIX_ACCESS_TOKEN.",
        "Your id is @you:example.org: the agent takes invitations of people whom it knows, and meets strangers alone.",
        "Invite it into a room without encryption and write to it; for encrypted ones, which programs make by "
        "themselves for two, set gateway.channels.matrix.options.encryption to `yes`. Ids of groups in which it is to "
        "answer (!...:example.org) stand in `groups`.",
        "With encryption `hermes gateway status` shows the device and its fingerprint: compare them with what your "
        "program shows, and mark the device there as verified.",
    ),
    make=make,
    options=OPTIONS,
)
