"""Receives Telegram updates by long polling or webhook, in order per chat."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import field, replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import (
    ChannelError,
    Hear,
    Heard,
    NeverHere,
    NotNow,
    OutcomeUnknown,
    Pressed,
    Said,
    TokenRefused,
)
from hermes_agent.gateway.chat_migration import ChatMigration
from hermes_agent.gateway.dispatcher import Cursor, Dispatcher, dispatching, is_control
from hermes_agent.gateway.telegram.api import BotApi
from hermes_agent.gateway.telegram.updates import LISTENED, Me, heard_in, moved_in
from hermes_agent.host.inbound.listener import Routes, listen
from hermes_agent.host.inbound.message import Request, Response, read, same

LARGEST_UPDATE = 2_000_000
MOST_WAITING = 100
"""Updates that wait to be taken in; Telegram brings one at a time, and again what it is told to."""
HEADER = "x-telegram-bot-api-secret-token"

Plain = Mapping[str, Any]  # arguments and answers of the Bot API
Brought = tuple[Plain, asyncio.Future[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Where Telegram sends updates by webhook: public URL, local port, and the secret sent with each update."""

    url: str
    port: int
    secret: str


def secret_of(token: str) -> str:
    """The webhook secret of a bot, derived from the token: the same in every process."""
    return hmac.new(token.encode(), b"webhook", hashlib.sha256).hexdigest()


def acknowledge(brought: Iterable[Brought]) -> None:
    """Confirm updates, after they were processed."""
    for _, taken in brought:
        if not taken.cancelled():
            taken.set_result(None)


class Entrance:
    """HTTP endpoint at `path` that receives Telegram updates. It acknowledges an update after it was processed;
    otherwise Telegram sends it again."""

    def __init__(self, path: str, secret: str) -> None:
        self._secret = secret
        self._brought: asyncio.Queue[Brought] = asyncio.Queue(MOST_WAITING)
        self.routes = Routes()
        self.routes.mount(path or "/", "POST", self._take)

    async def _take(self, request: Request) -> Response:
        """Handle one request, from any sender."""
        if not same(request.headers.get(HEADER, ""), self._secret):
            return Response(status=403)
        try:
            update = msgspec.json.decode(await read(request, LARGEST_UPDATE), type=dict[str, Any])
        except msgspec.DecodeError:
            return Response(status=400)
        if not isinstance(update.get("update_id"), int):
            return Response(status=400)
        if self._brought.full():
            return Response(status=503)
        taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._brought.put_nowait((update, taken))
        await taken
        return Response(status=200)

    async def next(self) -> list[Brought]:
        """Wait for updates and return them in order, at least one."""
        brought = [await self._brought.get()]
        while not self._brought.empty():
            brought.append(self._brought.get_nowait())
        return sorted(brought, key=lambda each: int(each[0]["update_id"]))


POLL_SECONDS = 50
ALBUM_SECONDS = 0.5
"""How long after a picture of an album the next one is awaited."""
ALBUM_LOOKS = 3
"""So often at most, whoever goes on sending pictures."""
LONGEST_WORD = 200
WEBHOOK_SET = "webhook is active"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Update loop of one Telegram bot, by polling or webhook."""

    api: BotApi
    moves: ChatMigration
    webhook: Webhook | None
    poll_seconds: float = POLL_SECONDS

    async def follow(self, me: Me, hear: Hear) -> None:
        """Process updates until cancelled. Raises `NotNow`, `TokenRefused`, and errors of `hear`."""
        async with dispatching() as dispatcher:
            intake = Intake(api=self.api, moves=self.moves, dispatcher=dispatcher, me=me, hear=hear)
            if self.webhook is None:
                await self._poll(dispatcher, intake)
            else:
                await self._receive(self.webhook, replace(intake, album_looks=0))

    async def _poll(self, dispatcher: Dispatcher, intake: Intake) -> None:
        """Poll for updates. Asking with a higher offset confirms them, so slow ones are received repeatedly while
        later ones do not wait."""
        cursor, seen = Cursor(0), 0
        while True:
            seconds = self.poll_seconds if await dispatcher.settled() else 0
            try:
                updates = await self._asked(cursor.mark, seconds)
            except NotNow as error:
                if WEBHOOK_SET not in str(error):
                    raise
                await self.api.call("deleteWebhook", {"drop_pending_updates": False})
                continue
            for update in updates:
                if (after := int(update["update_id"]) + 1) > seen:
                    seen = after
                    await intake.put(update, cursor.begin(after))

    async def _asked(self, offset: int, seconds: float) -> list[Plain]:
        wanted = {"offset": offset, "timeout": seconds, "allowed_updates": LISTENED}
        try:
            found: list[Plain] = await self.api.call("getUpdates", wanted, waits=seconds)
        except (OutcomeUnknown, NeverHere) as error:
            raise NotNow(str(error)) from error
        return found

    async def _receive(self, webhook: Webhook, intake: Intake) -> None:
        """Serve the webhook. It stays registered for the next process; Telegram keeps undelivered updates for a day."""
        entrance = Entrance(urlsplit(webhook.url).path, webhook.secret)
        async with AsyncExitStack() as open_:
            await self._open(open_, webhook, entrance)
            while True:
                for update, taken in await entrance.next():
                    await intake.put(update, partial(acknowledge, [(update, taken)]))

    async def _open(self, open_: AsyncExitStack, webhook: Webhook, entrance: Entrance) -> None:
        wanted = {"url": webhook.url, "secret_token": webhook.secret, "allowed_updates": LISTENED}
        try:
            await open_.enter_async_context(listen(entrance.routes, port=webhook.port))
            # By one connection, so that each chat is told in its order.
            await self.api.call("setWebhook", {**wanted, "max_connections": 1})
        except OSError as error:
            raise NotNow(f"Port {webhook.port} cannot be listened on: {error.strerror}.") from error
        except OutcomeUnknown as error:
            raise NotNow(str(error)) from error
        except NeverHere as error:
            raise TokenRefused(f"The webhook is refused. {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """Processes Telegram updates in their chat's order, and joins albums: Telegram sends each picture as a message, so
    the first waits for the others, at most `album_looks` times."""

    api: BotApi
    moves: ChatMigration
    dispatcher: Dispatcher
    me: Me
    hear: Hear
    album_looks: int = ALBUM_LOOKS
    _albums: dict[str, list[tuple[Plain, Callable[[], None]]]] = field(default_factory=dict)

    async def put(self, update: Plain, done: Callable[[], None]) -> None:
        """Process an update; `done` is called afterwards."""
        if (moved := moved_in(update)) is not None:
            await self.moves.moved(*moved)
        query, message = update.get("callback_query") or {}, update.get("message") or {}
        told = message or update.get("edited_message") or query.get("message") or update.get("my_chat_member") or {}
        chat = str((told.get("chat") or {}).get("id", ""))
        album = f"{chat}:{message['media_group_id']}" if message.get("media_group_id") else ""
        if album in self._albums:
            self._albums[album].append((update, done))
            return
        pieces = [(update, done)]
        if album and self.album_looks:
            self._albums[album] = pieces
        control = bool(query) or is_control(str(message.get("text", "")))
        await self.dispatcher.put(chat, partial(self._take, pieces, album), control=control)

    async def _take(self, pieces: list[tuple[Plain, Callable[[], None]]], album: str) -> None:
        if album in self._albums:
            for _ in range(self.album_looks):
                seen = len(pieces)
                await asyncio.sleep(ALBUM_SECONDS)
                if len(pieces) == seen:
                    break
            del self._albums[album]
        heard: Heard | None = None
        for update, _ in pieces:
            each = heard_in(update, self.me)
            heard = together(heard, each) if isinstance(heard, Said) and isinstance(each, Said) else heard or each
        if heard is not None:
            where = replace(heard.where, chat=await self.moves.first(heard.where.chat))
            word = await self.hear(replace(heard, where=where))
            if isinstance(heard, Pressed):
                await self._acknowledge(pieces[0][0], word)
        for _, done in pieces:
            done()

    async def _acknowledge(self, update: Plain, word: str) -> None:
        query = update["callback_query"]["id"]
        with suppress(ChannelError):
            await self.api.call("answerCallbackQuery", {"callback_query_id": query, "text": word[:LONGEST_WORD]})


def together(first: Said, more: Said) -> Said:
    """Join two messages of an album under the first one's id; any of them may carry the text."""
    return replace(
        first,
        text="\n".join(filter(None, (first.text, more.text))),
        media=(*first.media, *more.media),
        addressed=first.addressed or more.addressed,
    )
