"""Slack channel: receives over Socket Mode, sends over the Web API."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

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
    Needs,
    NeverHere,
    NotNow,
    Option,
    Pace,
    Part,
    Pressed,
    TokenRefused,
)
from hermes_agent.gateway.dispatcher import Dispatcher, dispatching
from hermes_agent.gateway.service import Service, upload
from hermes_agent.gateway.slack.events import BUTTON, PLATFORM, Own, Reader, Web, mrkdwn, place_of
from hermes_agent.gateway.text.cutting import cut
from hermes_agent.host.http import Http
from hermes_agent.host.websocket import Socket, SocketClosed, require, websocket

log = logging.getLogger(__name__)

API = "https://slack.com/api"
SECTION = 2900
"""Characters of one section block, which may have 3,000: the end of a code block is added."""
TEXT = 3900
"""Characters of a text without blocks, below the 4,000 that an edited one may have. Escaping makes texts longer."""
NAMES_KNOWN = 2000
TITLE_SECONDS = 3600.0
PAGES = 5
"""Pages of a history that are looked through for what may have been sent."""
EVENT = "hermes_slot"
SILENT_SECONDS = 60.0
"""After so long without a word the first one of a connection (`hello`) is not awaited any longer."""


class SlackChannel(Channel):
    """`Channel` adapter for one Slack workspace."""

    def __init__(self, needs: Needs, base: str, *, threads: bool) -> None:
        self._http: Http = needs.http
        self._bot = Web(_service(needs, "SLACK_BOT_TOKEN"), base)
        self._app = Web(_service(needs, "SLACK_APP_TOKEN"), base)
        self._host = urlsplit(base).netloc
        self._threads = threads
        self._now: Callable[[], float] = needs.clock.now
        self._own = ""
        self._names = BoundedCache[str, str](NAMES_KNOWN)
        self._titles = BoundedCache[str, str](NAMES_KNOWN, TITLE_SECONDS, self._now)

    async def listen(self, hear: Hear) -> None:
        me = await self._bot.call("auth.test", reads=True)
        self._own = str(me.get("user_id", ""))
        own = Own(user=self._own, bot=str(me.get("bot_id", "")), threads=self._threads)
        reader = Reader(own=own, name=self._name, title=self._title, file=self._file, now=self._now)
        while True:
            opened = await self._app.call("apps.connections.open", reads=True)
            try:
                async with websocket(self._http, str(opened.get("url", ""))) as socket, dispatching() as dispatcher:
                    await self._converse(socket, dispatcher, partial(self._take, socket, reader, hear))
            except SocketClosed as closed:
                raise NotNow(str(closed)) from closed

    async def _converse(
        self, socket: Socket, dispatcher: Dispatcher, take: Callable[[Mapping[str, Any]], Awaitable[None]]
    ) -> None:
        """Process messages until Slack asks to reconnect. Unacknowledged ones are sent again on the next connection."""
        message = await socket.receive(SILENT_SECONDS)
        while message.get("type") != "disconnect":
            if message.get("envelope_id"):
                chat, control = place_of(message, self._own)
                await dispatcher.put(chat, partial(take, message), control=control)
            message = await socket.receive()
        if message.get("reason") == "link_disabled":
            raise TokenRefused("Socket Mode is switched off for this Slack app.")

    async def _take(self, socket: Socket, reader: Reader, hear: Hear, message: Mapping[str, Any]) -> None:
        heard = await reader.heard(str(message.get("type")), message.get("payload") or {})
        word = await hear(heard) if heard is not None else ""
        await socket.send({"envelope_id": message["envelope_id"]})
        if isinstance(heard, Pressed) and word:
            await self._whisper(heard, word)

    async def _whisper(self, pressed: Pressed, word: str) -> None:
        """Reply to a button press, visible only to the person."""
        thread = pressed.where.thread or None
        with suppress(ChannelError):
            await self._bot.call(
                "chat.postEphemeral", channel=pressed.where.chat, user=pressed.sender.user, text=word, thread_ts=thread
            )

    async def send(self, to: Conversation, part: Part, key: str) -> str:
        thread = to.thread or part.answers.partition(":")[2] or None
        if part.file is not None:
            return await self._send_file(to, part, thread)
        sent = await self._bot.call(
            "chat.postMessage",
            channel=to.chat,
            thread_ts=thread,
            text=mrkdwn(part.text)[:TEXT],
            blocks=_blocks(part) or None,
            unfurl_links=False,
            unfurl_media=False,
            metadata={"event_type": EVENT, "event_payload": {"key": key}},
        )
        return str(sent["ts"])

    async def _send_file(self, to: Conversation, part: Part, thread: str | None) -> str:
        assert part.file is not None
        file = await upload(part.file)
        place = await self._bot.call(
            "files.getUploadURLExternal", reads=True, filename=part.file.name, length=file.size
        )
        await self._bot.upload(str(place["upload_url"]), file)
        await self._bot.call(
            "files.completeUploadExternal",
            files=[{"id": place["file_id"], "title": part.file.name}],
            channel_id=to.chat,
            thread_ts=thread,
            initial_comment=mrkdwn(part.text) or None,
        )
        return str(place["file_id"])

    async def edit(self, to: Conversation, receipt: str, part: Part) -> None:
        if receipt.startswith("F"):
            return  # A file's words stay what they were.
        await self._bot.call(
            "chat.update", channel=to.chat, ts=receipt, text=mrkdwn(part.text)[:TEXT], blocks=_blocks(part)
        )

    async def delete(self, to: Conversation, receipt: str) -> None:
        if receipt.startswith("F"):
            await self._bot.call("files.delete", file=receipt)
        else:
            await self._bot.call("chat.delete", channel=to.chat, ts=receipt)

    async def find(self, to: Conversation, part: Part, key: str, since: float) -> str | None:
        method = "conversations.replies" if to.thread else "conversations.history"
        cursor = None
        for _ in range(PAGES):
            page = await self._bot.call(
                method,
                reads=True,
                channel=to.chat,
                ts=to.thread or None,
                oldest=f"{since:.6f}",
                limit=200,
                include_all_metadata=True,
                cursor=cursor,
            )
            for message in page.get("messages") or ():
                if (receipt := self._is_it(message, part, key)) is not None:
                    return receipt
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or None
            if cursor is None:
                return None
        raise NotNow("The chat is too busy to be looked through.")

    def _is_it(self, message: dict[str, Any], part: Part, key: str) -> str | None:
        if part.file is not None:
            files = message.get("files") or ()
            own = not self._own or message.get("user") == self._own
            return next((str(file["id"]) for file in files if own and file.get("title") == part.file.name), None)
        payload = (message.get("metadata") or {}).get("event_payload") or {}
        return str(message["ts"]) if payload.get("key") == key else None

    async def check(self) -> str:
        me = await self._bot.call("auth.test", reads=True)
        await self._app.call("apps.connections.open", reads=True)
        return f"@{me['user']}" if me.get("user") else ""

    async def _name(self, user: str) -> str:
        """A user's display name, cached; empty if unavailable."""
        if (name := self._names.get(user)) is None:
            with suppress(ChannelError):
                found = (await self._bot.call("users.info", reads=True, user=user)).get("user") or {}
                profile = found.get("profile") or {}
                name = profile.get("display_name") or found.get("real_name") or found.get("name") or ""
                self._names.put(user, str(name))
        return str(name or "")

    async def _title(self, channel: str) -> str:
        """A channel's name, cached for an hour; empty if unavailable."""
        if (title := self._titles.get(channel)) is None:
            with suppress(ChannelError):
                found = (await self._bot.call("conversations.info", reads=True, channel=channel)).get("channel") or {}
                title = str(found.get("name") or "")
            self._titles.put(channel, title or "")
        return title or ""

    async def _file(self, told: Mapping[str, Any]) -> Mapping[str, Any]:
        """A file's full facts; for files shared by another organisation the event has only the id."""
        if told.get("file_access") != "check_file_info":
            return told
        with suppress(ChannelError):
            found = (await self._bot.call("files.info", reads=True, file=str(told.get("id", "")))).get("file")
            return found if isinstance(found, dict) else told
        return told

    async def fetch(self, media: Media, most: int) -> bytes:
        """Download a file, only from Slack: the token is sent nowhere else."""
        parts = urlsplit(media.reference)
        if parts.netloc != self._host and not (
            parts.scheme == "https" and (parts.hostname or "").endswith(".slack.com")
        ):
            raise NeverHere("The file is not kept by Slack.")
        return await self._bot.download(media.reference, most)


def _service(needs: Needs, secret: str) -> Service:
    return Service(title="Slack", http=needs.http, headers={"Authorization": f"Bearer {needs.secret(secret)}"})


def _blocks(part: Part) -> list[dict[str, Any]]:
    """Blocks, only for buttons or much escaping, since the text then shows only in notifications. An empty list
    removes buttons."""
    if not part.buttons and len(mrkdwn(part.text)) <= TEXT:
        return []
    sections: list[dict[str, Any]] = [
        {"type": "section", "text": {"type": "mrkdwn", "text": mrkdwn(piece)}} for piece in _sections(part.text)
    ]
    buttons = [
        {
            "type": "button",
            "text": {"type": "plain_text", "text": button.label[:75], "emoji": True},
            "action_id": f"{BUTTON}:{part.slot}:{number}",
            "value": str(number),
        }
        for number, button in enumerate(part.buttons)
    ]
    return [*sections, {"type": "actions", "elements": buttons}] if buttons else sections


def _sections(text: str) -> list[str]:
    """Split a text for section blocks, so that each piece fits after escaping."""
    return cut(text, SECTION, lambda piece: len(piece) + 4 * piece.count("&") + 3 * sum(map(piece.count, "<>|")))


def make(needs: Needs) -> Channel:
    """Factory of the Slack channel. Raises `ConfigError`."""
    require("slack")
    for name, begins in (("SLACK_APP_TOKEN", "xapp-"), ("SLACK_BOT_TOKEN", "xoxb-")):
        if not needs.secret(name):
            raise ConfigError(f"{name} is missing: the token of your Slack app that begins with {begins}.")
    options = {name: needs.options.get(name) or option.default for name, option in OPTIONS.items()}
    if options["threads"] not in ("yes", "no"):
        raise ConfigError("gateway.channels.slack.options.threads is `yes` or `no`.")
    return SlackChannel(needs, options["api"].rstrip("/"), threads=options["threads"] == "yes")


OPTIONS = {
    "threads": Option(doc="What is said to the agent in a channel begins a thread (`yes`, `no`).", default="yes"),
    "api": Option(doc="Where Slack's Web API is.", default=API),
}

CHANNEL = Kind(
    name=PLATFORM,
    title="Slack",
    abilities=Abilities(
        longest_message=4000,
        edit=True,
        delete=True,
        threads=True,
        buttons=25,
        largest_file=1_000_000_000,
        read_back=True,
        hears_edits=True,
    ),
    pace=Pace(every=0.05, chat=1.0, group=1.0, edit=1.2),
    secrets=("SLACK_APP_TOKEN", "SLACK_BOT_TOKEN"),
    person=(r"[A-Z][A-Z0-9]+", "it is a member id, such as U0123ABCD"),
    setup=(
        "Make an app at https://api.slack.com/apps and switch Socket Mode on; its app token (xapp-, with "
        "connections:write) is SLACK_APP_TOKEN.",
        "Give the bot the scopes app_mentions:read, channels:history, groups:history, im:history, mpim:history, "
        "chat:write, files:read, files:write, users:read and metadata.message:read; for the names of "
        "channels also channels:read and groups:read.",
        "Subscribe to the events message.channels, message.groups, message.im, message.mpim, app_mention, "
        "member_left_channel; switch interactivity on, and messages in the app's home.",
        "Add the slash command /hermes: Slack keeps every other line that begins with a slash to itself.",
        "Install the app; its bot token (xoxb-) is SLACK_BOT_TOKEN. Your id is your member id (U...).",
    ),
    make=make,
    options=OPTIONS,
)
