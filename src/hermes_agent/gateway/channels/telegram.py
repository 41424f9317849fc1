"""Telegram: the Bot API by long polling; topics, buttons, edits, files."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from hermes_agent.core.errors import ConfigError
from hermes_agent.core.inbound import Conversation
from hermes_agent.core.outbound import Button
from hermes_agent.gateway.channel import (
    Abilities,
    Channel,
    ChannelError,
    Kind,
    MessageGone,
    Needs,
    NeverHere,
    NotNow,
    Option,
    OutcomeUnknown,
    Pace,
    Part,
    Unit,
)
from hermes_agent.gateway.heard import Hear, Pressed
from hermes_agent.gateway.telegram.api import BotApi, Unchanged, Unparsed
from hermes_agent.gateway.telegram.markdown import formatted
from hermes_agent.gateway.telegram.updates import LISTENED, Me, heard_in

log = logging.getLogger(__name__)

Plain = Mapping[str, Any]  # arguments and answers of the Bot API
POLL_SECONDS = 50
WIDE = 12
"""Letters of a button's label with which it still shares its row."""
PHOTOS = frozenset({"image/jpeg", "image/png"})
LONGEST_WORD = 200
LONGEST_CAPTION = 1024


class Telegram:
    """A bot, at the other end of one token."""

    def __init__(self, api: BotApi, poll_seconds: float = POLL_SECONDS) -> None:
        self._api = api
        self._poll_seconds = poll_seconds
        self._me: Me | None = None

    async def listen(self, hear: Hear) -> None:
        """See `Channel`. An update is confirmed by asking for those after it."""
        me = await self._who()
        offset = 0
        while True:
            wanted = {"offset": offset, "timeout": self._poll_seconds, "allowed_updates": LISTENED}
            try:
                updates = await self._api.call("getUpdates", wanted, waits=self._poll_seconds)
            except (OutcomeUnknown, NeverHere) as error:
                raise NotNow(str(error)) from error
            await self._hand_on(updates, me, hear)
            offset = max((int(update["update_id"]) + 1 for update in updates), default=offset)

    async def send(self, to: Conversation, part: Part, key: str) -> str:  # noqa: ARG002  the Bot API has no keys
        arguments: dict[str, Any] = {**_place(to), **_reply(part)}
        if part.file is not None:
            photo = part.file.media_type in PHOTOS
            method, field = ("sendPhoto", "photo") if photo else ("sendDocument", "document")
            caption = {"caption": part.text[:LONGEST_CAPTION]} if part.text else {}
            sent = await self._api.upload(method, field, part.file, {**arguments, **caption})
        else:
            sent = await self._text("sendMessage", {**arguments, **_buttons(part)}, part.text)
        return str(sent["message_id"])

    async def edit(self, to: Conversation, receipt: str, part: Part) -> None:
        """See `Channel`."""
        arguments = {"chat_id": to.chat, "message_id": _number(receipt), **_buttons(part)}
        with suppress(Unchanged):
            await self._text("editMessageText", arguments, part.text)

    async def delete(self, to: Conversation, receipt: str) -> None:
        """See `Channel`."""
        await self._api.call("deleteMessage", {"chat_id": to.chat, "message_id": _number(receipt)})

    async def find(self, to: Conversation, part: Part, key: str, since: float) -> str | None:  # noqa: ARG002  a bot cannot read back
        """Never asked: a bot cannot read what it wrote."""
        return None

    async def typing(self, to: Conversation) -> None:
        """See `Channel`."""
        await self._api.call("sendChatAction", {**_place(to), "action": "typing"})

    async def react(self, to: Conversation, source_id: str, sign: str) -> None:
        """See `Channel`."""
        reaction = [{"type": "emoji", "emoji": sign}]
        message = _number(source_id.rpartition(":")[2])
        await self._api.call("setMessageReaction", {"chat_id": to.chat, "message_id": message, "reaction": reaction})

    async def health(self) -> str:
        """See `Channel`."""
        try:
            await self._who()
        except ChannelError as error:
            return str(error)
        return ""

    async def close(self) -> None:
        """The clients are the process's."""

    async def _who(self) -> Me:
        if self._me is None:
            me = await self._api.call("getMe", {})
            self._me = Me(id=int(me["id"]), name=str(me.get("username", "")))
        return self._me

    async def _hand_on(self, updates: list[Plain], me: Me, hear: Hear) -> None:
        """Hand on what each chat tells in its order, the chats side by side."""
        chats: defaultdict[str, list[tuple[Plain, Any]]] = defaultdict(list)
        for update in updates:
            heard = heard_in(update, me, self._api.fetch)
            if heard is not None:
                chats[heard.where.chat].append((update, heard))

        async def one(told: list[tuple[Plain, Any]]) -> None:
            for update, heard in told:
                word = await hear(heard)
                if isinstance(heard, Pressed):
                    await self._acknowledge(update, word)

        try:
            async with asyncio.TaskGroup() as group:
                for told in chats.values():
                    group.create_task(one(told))
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _acknowledge(self, update: Plain, word: str) -> None:
        query = update["callback_query"]["id"]
        with suppress(ChannelError):
            await self._api.call("answerCallbackQuery", {"callback_query_id": query, "text": word[:LONGEST_WORD]})

    async def _text(self, method: str, arguments: Plain, text: str) -> Plain:
        """A call with formatted words, or with plain ones where the format is not understood."""
        quiet = {"link_preview_options": {"is_disabled": True}}
        try:
            words = {"text": formatted(text), "parse_mode": "MarkdownV2"}
            result: Plain = await self._api.call(method, {**arguments, **words, **quiet})
        except Unparsed:
            log.info("telegram did not understand the format of a message; it is sent plain")
            result = await self._api.call(method, {**arguments, "text": text, **quiet})
        return result


def _place(to: Conversation) -> dict[str, Any]:
    return {"chat_id": to.chat} | ({"message_thread_id": _number(to.thread)} if to.thread else {})


def _reply(part: Part) -> dict[str, Any]:
    message = part.answers.rpartition(":")[2]
    if not message.isdecimal():
        return {}
    return {"reply_parameters": {"message_id": int(message), "allow_sending_without_reply": True}}


def _buttons(part: Part) -> dict[str, Any]:
    if not part.buttons:
        return {}
    keys = [_key(button, part.slot, number) for number, button in enumerate(part.buttons)]
    narrow = all(len(button.label) <= WIDE for button in part.buttons)
    return {"reply_markup": {"inline_keyboard": [keys] if narrow else [[key] for key in keys]}}


def _key(button: Button, slot: int, number: int) -> dict[str, str]:
    return {"text": button.label, "callback_data": f"{slot}.{number}"}


def _number(text: str) -> int:
    if not text.isdecimal():
        raise MessageGone(f"Telegram has no message {text}.")
    return int(text)


def make(needs: Needs) -> Channel:
    """A bot as the settings describe it. Raises `ConfigError` without a token."""
    token = needs.secret("TELEGRAM_BOT_TOKEN")
    if not token:
        raise ConfigError("Telegram needs TELEGRAM_BOT_TOKEN: @BotFather gives one, `hermes secrets set` keeps it.")
    url = needs.options.get("api_url") or "https://api.telegram.org"
    return Telegram(BotApi(url=url.rstrip("/"), token=token, http=needs.http))


CHANNEL = Kind(
    name="telegram",
    title="Telegram",
    abilities=Abilities(
        longest_message=4096,
        unit=Unit.UTF16,
        edit=True,
        delete=True,
        threads=True,
        buttons=8,
        reactions=True,
        typing=5.0,
        largest_file=50_000_000,
        voice=True,
        mentions=True,
        hears_edits=True,
    ),
    # core.telegram.org/bots/faq: about 30 messages a second in all, one a second in a chat, 20 a minute in a group.
    pace=Pace(every=1 / 30, chat=1.0, group=3.0, edit=1.5),
    secrets=("TELEGRAM_BOT_TOKEN",),
    setup=(
        "Talk to @BotFather in Telegram, send /newbot, choose a name; it answers with a token.",
        "Keep the token: `hermes secrets set TELEGRAM_BOT_TOKEN`.",
        "Write to your bot: it answers with a code for `hermes pairing approve`.",
        "For groups: /setprivacy at @BotFather, add the bot, and name the group's id in `groups`.",
    ),
    make=make,
    options={"api_url": Option(doc="Address of the Bot API.", default="https://api.telegram.org")},
)
