"""Receives Telegram updates by long polling, in order per chat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import Any

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
)
from hermes_agent.gateway.chat_migration import ChatMigration
from hermes_agent.gateway.dispatcher import Cursor, Dispatcher, dispatching, is_control
from hermes_agent.gateway.telegram.api import BotApi
from hermes_agent.gateway.telegram.updates import LISTENED, Me, heard_in, moved_in

Plain = Mapping[str, Any]  # arguments and answers of the Bot API

POLL_SECONDS = 50
ALBUM_SECONDS = 0.5
"""How long after a picture of an album the next one is awaited."""
ALBUM_LOOKS = 3
"""So often at most, whoever goes on sending pictures."""
LONGEST_WORD = 200
WEBHOOK_SET = "webhook is active"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Update loop of one Telegram bot."""

    api: BotApi
    moves: ChatMigration
    poll_seconds: float = POLL_SECONDS

    async def follow(self, me: Me, hear: Hear) -> None:
        """Process updates until cancelled. Raises `NotNow`, `TokenRefused`, and errors of `hear`."""
        async with dispatching() as dispatcher:
            intake = Intake(api=self.api, moves=self.moves, dispatcher=dispatcher, me=me, hear=hear)
            await self._poll(dispatcher, intake)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """Processes Telegram updates in their chat's order, and joins albums: Telegram sends each picture as a message, so
    the first waits for the others, a few times at most."""

    api: BotApi
    moves: ChatMigration
    dispatcher: Dispatcher
    me: Me
    hear: Hear
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
        if album:
            self._albums[album] = pieces
        control = bool(query) or is_control(str(message.get("text", "")))
        await self.dispatcher.put(chat, partial(self._take, pieces, album), control=control)

    async def _take(self, pieces: list[tuple[Plain, Callable[[], None]]], album: str) -> None:
        if album in self._albums:
            for _ in range(ALBUM_LOOKS):
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
