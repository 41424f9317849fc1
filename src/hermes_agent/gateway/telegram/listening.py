"""What Telegram tells: updates, asked for by long polling or brought to a webhook, each chat's in their order."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import ChannelError, NeverHere, NotNow, OutcomeUnknown, TokenRefused
from hermes_agent.gateway.chat_migration import ChatMigration
from hermes_agent.gateway.inbound_events import Hear, Heard, Pressed, Said
from hermes_agent.gateway.telegram.albums import album_of, of_albums, together
from hermes_agent.gateway.telegram.api import BotApi
from hermes_agent.gateway.telegram.updates import LISTENED, Me, heard_in, moved_in
from hermes_agent.gateway.telegram.webhook import Entrance, Webhook, acknowledge
from hermes_agent.host.inbound.listener import listen

Plain = Mapping[str, Any]  # arguments and answers of the Bot API
POLL_SECONDS = 50
ALBUM_SECONDS = 0.5
"""How long after a picture of an album the next one is awaited."""
ALBUM_LOOKS = 3
"""So often at most, whoever goes on sending pictures: until then nobody else is heard, also not with `/stop`."""
LONGEST_WORD = 200
WEBHOOK_SET = "webhook is active"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Follows one bot."""

    api: BotApi
    moves: ChatMigration
    webhook: Webhook | None
    poll_seconds: float = POLL_SECONDS

    async def follow(self, me: Me, hear: Hear) -> None:
        """Tell what comes until cancelled. Raises `NotNow`, `TokenRefused`, and what `hear` raises."""
        if self.webhook is None:
            await self._poll(me, hear)
        else:
            await self._receive(self.webhook, me, hear)

    async def _poll(self, me: Me, hear: Hear) -> None:
        """Ask for updates. One is confirmed by asking for those after it."""
        offset = 0
        while True:
            wanted = {"offset": offset, "timeout": self.poll_seconds, "allowed_updates": LISTENED}
            try:
                updates = await self._whole(wanted)
            except NotNow as error:
                if WEBHOOK_SET not in str(error):
                    raise
                await self.api.call("deleteWebhook", {"drop_pending_updates": False})
                continue
            await self._hand_on(updates, me, hear)
            offset = max((int(update["update_id"]) + 1 for update in updates), default=offset)

    async def _whole(self, wanted: Plain) -> list[Plain]:
        """What is new, with what of an album was still on its way: nothing is confirmed, so that all of it is told once
        more."""
        seen, updates = 0, await self._asked(wanted)
        for _ in range(ALBUM_LOOKS):
            if (pictures := of_albums(updates)) <= seen:
                break
            await asyncio.sleep(ALBUM_SECONDS)
            seen, updates = pictures, await self._asked({**wanted, "timeout": 0})
        return updates

    async def _asked(self, wanted: Plain) -> list[Plain]:
        try:
            found: list[Plain] = await self.api.call("getUpdates", wanted, waits=float(wanted["timeout"]))
        except (OutcomeUnknown, NeverHere) as error:
            raise NotNow(str(error)) from error
        return found

    async def _receive(self, webhook: Webhook, me: Me, hear: Hear) -> None:
        """Have updates brought. One is confirmed when it was taken in; a webhook that is left is kept for the next
        process, and Telegram keeps what it cannot bring for a day."""
        entrance = Entrance(urlsplit(webhook.url).path, webhook.secret)
        async with AsyncExitStack() as open_:
            await self._open(open_, webhook, entrance)
            while True:
                brought = await entrance.next()
                await self._hand_on([update for update, _ in brought], me, hear)
                acknowledge(brought)

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

    async def _hand_on(self, updates: list[Plain], me: Me, hear: Hear) -> None:
        """Hand on what each chat tells in its order, the chats side by side."""
        chats: defaultdict[str, list[tuple[Plain, Any]]] = defaultdict(list)
        for update in updates:
            if (moved := moved_in(update)) is not None:
                await self.moves.moved(*moved)
            heard = heard_in(update, me, self.api.fetch)
            if heard is not None:
                where = replace(heard.where, chat=await self.moves.first(heard.where.chat))
                _put(chats[where.chat], update, replace(heard, where=where))

        async def one(acknowledge: list[tuple[Plain, Any]]) -> None:
            for update, heard in acknowledge:
                word = await hear(heard)
                if isinstance(heard, Pressed):
                    await self._acknowledge(update, word)

        try:
            async with asyncio.TaskGroup() as group:
                for acknowledge in chats.values():
                    group.create_task(one(acknowledge))
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _acknowledge(self, update: Plain, word: str) -> None:
        query = update["callback_query"]["id"]
        with suppress(ChannelError):
            await self.api.call("answerCallbackQuery", {"callback_query_id": query, "text": word[:LONGEST_WORD]})


def _put(acknowledge: list[tuple[Plain, Any]], update: Plain, heard: Heard) -> None:
    """Put what was heard behind the rest of its chat, a picture of an album to those before it."""
    for index, (before, first) in enumerate(acknowledge):
        if isinstance(heard, Said) and album_of(update) and album_of(before) == album_of(update):
            acknowledge[index] = before, together(first, heard)
            return
    acknowledge.append((update, heard))
