"""Discord channel: receives over Discord's gateway WebSocket, sends over its REST API."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from hermes_agent.core.chat import Conversation
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.bounded_cache import BoundedCache
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
    Pressed,
    Unit,
)
from hermes_agent.gateway.discord.events import BUTTON, PLATFORM, Place, Reader, singly
from hermes_agent.gateway.discord.stream import Stream
from hermes_agent.gateway.service import Answer, Service, form
from hermes_agent.host.websocket import require
from hermes_agent.version import VERSION

API = "https://discord.com/api/v10"
AGENT = f"DiscordBot (hermes, {VERSION})"
"""How Discord wants programs to name themselves."""
ROW = 5
"""Buttons in one row."""
CHANNELS_KNOWN = 5000
THREADS = frozenset({10, 11, 12})
"""Kinds of channels that are threads."""
RENAMED = ("CHANNEL_UPDATE", "THREAD_UPDATE")
HIDDEN = 1 << 6
"""Only for the one who pressed."""
NO_PREVIEWS = 1 << 2
ANSWER, NOTED = 4, 6


class DiscordChannel(Channel):
    """`Channel` adapter for one Discord bot."""

    def __init__(self, needs: Needs, base: str, token: str) -> None:
        headers = {"Authorization": f"Bot {token}", "User-Agent": AGENT}
        self._rest = Service(title="Discord", http=needs.http, headers=headers, base=base, meaning=meaning)
        self._files = Service(title="Discord", http=needs.http, headers={"User-Agent": AGENT})
        mark = hashlib.sha256(token.encode()).hexdigest()[:16]
        self._stream = Stream(needs.http, token, needs.folder / f"session-{mark}.json")
        self._now = needs.clock.now
        self._places = BoundedCache[str, Place](CHANNELS_KNOWN)
        self._roles: dict[str, str] = {}

    async def listen(self, hear: Hear) -> None:
        me = await self._rest.ask("GET", "users/@me", reads=True)
        own = str(me.get("id", ""))

        async def role(server: str) -> str:
            return await self._role(server, own)

        reader = Reader(own=own, place=self._place, role=role, now=self._now)

        async def take(name: str, data: Mapping[str, Any]) -> bool:
            known = False
            if name in RENAMED:
                self._places.pop(str(data.get("id")))
            for kind, each in singly(name, data):
                heard = await reader.heard(kind, each)
                if heard is None:
                    continue
                known, word = True, await hear(heard)
                if isinstance(heard, Pressed):
                    await self._note(data, word)
            return known

        while True:
            place = await self._rest.ask("GET", "gateway/bot", reads=True)
            await self._stream.follow(str(place.get("url", "")), take)

    async def _note(self, interaction: Mapping[str, Any], word: str) -> None:
        """Acknowledge a button press, with a reply visible only to the person."""
        path = f"interactions/{interaction.get('id')}/{interaction.get('token')}/callback"
        said = {"type": ANSWER, "data": {"content": word, "flags": HIDDEN, **QUIET}}
        with suppress(ChannelError):
            await self._rest.ask("POST", path, said if word else {"type": NOTED})

    async def send(self, to: Conversation, part: Part, key: str) -> str:
        content = {
            **_content(part),
            "nonce": hashlib.sha256(key.encode()).hexdigest()[:25],
            "enforce_nonce": True,
        }
        if part.answers:
            content["message_reference"] = {"message_id": part.answers, "fail_if_not_exists": False}
        path = f"channels/{to.thread or to.chat}/messages"
        try:
            try:
                sent = await self._sent(path, content, part)
            except Unanswerable:
                content.pop("message_reference", None)
                sent = await self._sent(path, content, part)
        except MessageGone as error:
            raise NeverHere(str(error)) from error
        return str(sent["id"])

    async def _sent(self, path: str, content: Mapping[str, Any], part: Part) -> dict[str, Any]:
        if part.file is None:
            return await self._rest.ask("POST", path, content)
        return await self._rest.ask("POST", path, await form("files[0]", part.file, {"payload_json": content}))

    async def edit(self, to: Conversation, receipt: str, part: Part) -> None:
        await self._rest.ask("PATCH", _message(to, receipt), _content(part))

    async def delete(self, to: Conversation, receipt: str) -> None:
        await self._rest.ask("DELETE", _message(to, receipt))

    async def typing(self, to: Conversation) -> None:
        await self._rest.ask("POST", f"channels/{to.thread or to.chat}/typing", reads=True)

    async def check(self) -> str:
        return str((await self._rest.ask("GET", "users/@me", reads=True)).get("username", ""))

    async def _place(self, channel: str) -> Place:
        """Facts about a channel or thread; empty if it is not visible to the bot."""
        if (known := self._places.get(channel)) is not None:
            return known
        found: dict[str, Any] = {}
        with suppress(NeverHere):
            found = await self._rest.ask("GET", f"channels/{channel}", reads=True)
        parent = str(found.get("parent_id") or "") if found.get("type") in THREADS else ""
        return self._places.put(channel, Place(parent=parent, name=str(found.get("name") or "")))

    async def _role(self, server: str, own: str) -> str:
        """The id of the bot's own role in a server; empty if it has none."""
        if server not in self._roles:
            found: dict[str, Any] = {}
            with suppress(NeverHere):
                found = await self._rest.ask("GET", f"guilds/{server}", reads=True)
            tags = {str(each.get("id")): each.get("tags") or {} for each in found.get("roles") or ()}
            self._roles[server] = next((id_ for id_, tag in tags.items() if str(tag.get("bot_id")) == own), "")
        return self._roles[server]

    async def fetch(self, media: Media, most: int) -> bytes:
        """Download a file. Its URL is signed, so no token is sent."""
        return await self._files.fetch(media.reference, most)


QUIET: dict[str, Any] = {"allowed_mentions": {"parse": []}}
"""Nobody is notified by what a text mentions."""


def _message(to: Conversation, id_: str) -> str:
    return f"channels/{to.thread or to.chat}/messages/{id_}"


def _content(part: Part) -> dict[str, Any]:
    buttons = [
        {"type": 2, "style": 2, "label": button.label[:80], "custom_id": f"{BUTTON}:{part.slot}:{number}"}
        for number, button in enumerate(part.buttons)
    ]
    rows = [{"type": 1, "components": buttons[at : at + ROW]} for at in range(0, len(buttons), ROW)]
    return {"content": part.text, "components": rows, "flags": NO_PREVIEWS, **QUIET}


def make(needs: Needs) -> Channel:
    """Factory of the Discord channel. Raises `ConfigError`."""
    require(PLATFORM)
    token = needs.secret("DISCORD_BOT_TOKEN")
    if not token:
        raise ConfigError("DISCORD_BOT_TOKEN is missing: the token of your bot.")
    return DiscordChannel(needs, (needs.options.get("api") or API).rstrip("/"), token.removeprefix("Bot "))


CHANNEL = Kind(
    name=PLATFORM,
    title="Discord",
    abilities=Abilities(
        longest_message=2000,
        unit=Unit.CHARACTERS,
        edit=True,
        delete=True,
        threads=True,
        buttons=25,
        typing=10.0,
        largest_file=10_000_000,
        keyed=120.0,
        hears_edits=True,
    ),
    pace=Pace(every=0.03, chat=1.0, group=1.0, edit=1.2),
    secrets=("DISCORD_BOT_TOKEN",),
    person=(r"\d+", "it is a number: Developer Mode, Copy User ID"),
    setup=(
        "Make an application with a bot at https://discord.com/developers/applications; its token is "
        "DISCORD_BOT_TOKEN.",
        "Switch on the Message Content Intent at the bot's page.",
        "Invite it with the scope bot and the permissions View Channels, Send Messages, Send Messages in Threads, "
        "Attach Files, Add Reactions, Read Message History.",
        "Your id is a number: Developer Mode, Copy User ID.",
    ),
    make=make,
    options={"api": Option(doc="Where Discord's REST interface is.", default=API)},
)


GONE = frozenset({"10008", "50005", "50021"})
"""The message is not there, is somebody else's, or cannot be changed."""

UNANSWERABLE = frozenset({"160002", "160009", "160010"})
"""Nothing may answer a message there: the history of the channel may not be read, or the message not be shown."""


class Unanswerable(NeverHere):
    """Discord cannot attach a reply to this message; the text can be sent without a reply reference."""


def meaning(answer: Answer) -> ChannelError:
    """Map an error response (status 400 and above) to a `ChannelError`."""
    code, words = str(answer.fields.get("code", 0)), str(answer.fields.get("message", ""))
    if code in UNANSWERABLE:
        return Unanswerable(f"Discord lets nothing answer that message: {words} ({code}).")
    if code in GONE:
        return MessageGone(f"The message is gone or stays as it is ({words}).")
    return NeverHere(f"Discord refuses it: {answer.status} {words} ({code}).")
