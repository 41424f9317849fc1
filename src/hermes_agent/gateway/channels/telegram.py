"""Telegram: the Bot API by long polling or a webhook; topics, buttons, edits, files."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ConfigError
from hermes_agent.core.inbound import Conversation
from hermes_agent.core.outbound import Attachment, Button
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
    TokenRefused,
    Unit,
)
from hermes_agent.gateway.heard import Hear, Pressed
from hermes_agent.gateway.moves import Moves
from hermes_agent.gateway.telegram.api import BotApi, Moved, Unchanged, Unfit, Unparsed
from hermes_agent.gateway.telegram.files import Way, ways_of
from hermes_agent.gateway.telegram.markdown import formatted, unmeant
from hermes_agent.gateway.telegram.updates import LISTENED, Me, heard_in, moved_in
from hermes_agent.gateway.telegram.webhook import LARGEST_UPDATE, Entrance, secret_of, told
from hermes_agent.host.serve import serve

log = logging.getLogger(__name__)

Plain = Mapping[str, Any]  # arguments and answers of the Bot API
POLL_SECONDS = 50
WIDE = 12
"""Letters of a button's label with which it still shares its row."""
LONGEST_WORD = 200
NO_PREVIEW: Plain = {"link_preview_options": {"is_disabled": True}}
WEBHOOK_SET = "webhook is active"
WEBHOOK_PORT = 8443


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Where Telegram brings updates, the port of this machine to which that leads, and what it shows with each."""

    url: str
    port: int
    secret: str


class Telegram:
    """A bot, at the other end of one token."""

    def __init__(
        self, api: BotApi, moves: Moves, webhook: Webhook | None = None, poll_seconds: float = POLL_SECONDS
    ) -> None:
        self._api = api
        self._moves = moves
        self._webhook = webhook
        self._poll_seconds = poll_seconds
        self._me: Me | None = None

    async def listen(self, hear: Hear) -> None:
        """See `Channel`."""
        me = await self._who()
        if self._webhook is None:
            await self._poll(me, hear)
        else:
            await self._receive(self._webhook, me, hear)

    async def _poll(self, me: Me, hear: Hear) -> None:
        """Ask for updates. One is confirmed by asking for those after it."""
        offset = 0
        while True:
            wanted = {"offset": offset, "timeout": self._poll_seconds, "allowed_updates": LISTENED}
            try:
                updates = await self._api.call("getUpdates", wanted, waits=self._poll_seconds)
            except NotNow as error:
                if WEBHOOK_SET not in str(error):
                    raise
                await self._api.call("deleteWebhook", {"drop_pending_updates": False})
                continue
            except (OutcomeUnknown, NeverHere) as error:
                raise NotNow(str(error)) from error
            await self._hand_on(updates, me, hear)
            offset = max((int(update["update_id"]) + 1 for update in updates), default=offset)

    async def _receive(self, webhook: Webhook, me: Me, hear: Hear) -> None:
        """Have updates brought. One is confirmed when it was taken in; a webhook that is left is kept for the next
        process, and Telegram keeps what it cannot bring for a day."""
        entrance = Entrance(urlsplit(webhook.url).path, webhook.secret)
        async with AsyncExitStack() as open_:
            await self._open(open_, webhook, entrance)
            while True:
                brought = await entrance.next()
                await self._hand_on([update for update, _ in brought], me, hear)
                told(brought)

    async def _open(self, open_: AsyncExitStack, webhook: Webhook, entrance: Entrance) -> None:
        wanted = {"url": webhook.url, "secret_token": webhook.secret, "allowed_updates": LISTENED}
        try:
            await open_.enter_async_context(serve(entrance.handle, webhook.port, largest=LARGEST_UPDATE))
            # By one connection, so that each chat is told in its order.
            await self._api.call("setWebhook", {**wanted, "max_connections": 1})
        except OSError as error:
            raise NotNow(f"Port {webhook.port} cannot be listened on: {error.strerror}.") from error
        except OutcomeUnknown as error:
            raise NotNow(str(error)) from error
        except NeverHere as error:
            raise TokenRefused(f"The webhook is refused. {error}") from error

    async def send(self, to: Conversation, part: Part, key: str) -> str:  # noqa: ARG002  the Bot API has no keys
        async def there(chat: str) -> str:
            sent = await self._sent(_place(to, chat) | _reply(part, chat), part)
            return _receipt(to, chat, sent)

        return await self._there(to, there)

    async def _sent(self, arguments: Plain, part: Part) -> Plain:
        if part.file is None:
            return await self._text("sendMessage", {**arguments, **_buttons(part)}, part.text)
        *others, last = await ways_of(part.file)
        for way in others:
            try:
                return await self._file(way, part.file, part.text, arguments)
            except Unfit as error:
                log.info("telegram takes a file as a document alone: %s", error)
        return await self._file(last, part.file, part.text, arguments)

    async def _file(self, way: Way, file: Attachment, caption: str, arguments: Plain) -> Plain:
        async def upload(words: Plain) -> Plain:
            result: Plain = await self._api.upload(way.method, way.field, file, {**arguments, **words})
            return result

        return await _worded(upload, "caption", caption) if caption else await upload({})

    async def edit(self, to: Conversation, receipt: str, part: Part) -> None:
        """See `Channel`."""

        async def there(chat: str) -> None:
            with suppress(Unchanged):
                await self._text("editMessageText", _message(to, chat, receipt) | _buttons(part), part.text)

        await self._there(to, there)

    async def delete(self, to: Conversation, receipt: str) -> None:
        """See `Channel`."""

        async def there(chat: str) -> None:
            await self._api.call("deleteMessage", _message(to, chat, receipt))

        await self._there(to, there)

    async def find(self, to: Conversation, part: Part, key: str, since: float) -> str | None:  # noqa: ARG002  a bot cannot read back
        """Never asked: a bot cannot read what it wrote."""
        return None

    async def draft(self, to: Conversation, text: str, key: str) -> None:
        """See `Channel`. Private chats only, and for every bot since Bot API 9.5 (March 2026)."""
        await self._there(to, lambda chat: self._draft({**_place(to, chat), "draft_id": _draft_id(key)}, text))

    async def _draft(self, arguments: Plain, text: str) -> None:
        try:
            await self._text("sendMessageDraft", arguments, text, {})
        except OutcomeUnknown as error:
            raise NotNow(str(error)) from error
        except TokenRefused as error:
            # A server that is older does not know the method, which it says as of an unknown token.
            raise NeverHere(f"This Bot API server shows no drafts. {error}") from error

    async def typing(self, to: Conversation) -> None:
        """See `Channel`."""
        await self._there(to, lambda chat: self._api.call("sendChatAction", {**_place(to, chat), "action": "typing"}))

    async def react(self, to: Conversation, source_id: str, sign: str) -> None:
        """See `Channel`."""
        reaction = [{"type": "emoji", "emoji": sign}]
        chat, _, message = source_id.rpartition(":")
        place = {"chat_id": chat or to.chat, "message_id": _number(message)}
        await self._api.call("setMessageReaction", {**place, "reaction": reaction})

    async def health(self) -> str:
        """See `Channel`."""
        try:
            await self._who()
        except ChannelError as error:
            return str(error)
        return ""

    async def close(self) -> None:
        """The clients are the process's."""

    async def _there(self, to: Conversation, do: Callable[[str], Awaitable[T]]) -> T:
        """Do something in a chat under the id that it has now."""
        chat = await self._moves.now(to.chat)
        try:
            return await do(chat)
        except Moved as moved:
            await self._moves.moved(chat, moved.to)
            return await do(moved.to)

    async def _who(self) -> Me:
        if self._me is None:
            me = await self._api.call("getMe", {})
            self._me = Me(id=int(me["id"]), name=str(me.get("username", "")))
        return self._me

    async def _hand_on(self, updates: list[Plain], me: Me, hear: Hear) -> None:
        """Hand on what each chat tells in its order, the chats side by side."""
        chats: defaultdict[str, list[tuple[Plain, Any]]] = defaultdict(list)
        for update in updates:
            if (moved := moved_in(update)) is not None:
                await self._moves.moved(*moved)
            heard = heard_in(update, me, self._api.fetch)
            if heard is not None:
                where = replace(heard.where, chat=await self._moves.first(heard.where.chat))
                chats[where.chat].append((update, replace(heard, where=where)))

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

    async def _text(self, method: str, arguments: Plain, text: str, quiet: Plain = NO_PREVIEW) -> Plain:
        async def call(words: Plain) -> Plain:
            result: Plain = await self._api.call(method, {**arguments, **words, **quiet})
            return result

        return await _worded(call, "text", text)


async def _worded(call: Callable[[Plain], Awaitable[Plain]], field: str, text: str) -> Plain:
    """A call with formatted words, or with plain ones where the format is not understood."""
    try:
        return await call({field: formatted(text), "parse_mode": "MarkdownV2"})
    except Unparsed:
        log.info("telegram did not understand the format of a message; it is sent plain")
        return await call({field: unmeant(text)})


def _draft_id(key: str) -> int:
    """The same for the same key, and never 0."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") % 0x7FFFFFFF + 1


def _place(to: Conversation, chat: str) -> dict[str, Any]:
    return {"chat_id": chat} | ({"message_thread_id": _number(to.thread)} if to.thread else {})


def _receipt(to: Conversation, chat: str, sent: Plain) -> str:
    """The id of a message, with the chat's where that is not the first one: messages are counted anew there."""
    return f"{chat}:{sent['message_id']}" if chat != to.chat else str(sent["message_id"])


def _message(to: Conversation, chat: str, receipt: str) -> dict[str, Any]:
    before, _, message = receipt.rpartition(":")
    if (before or to.chat) != chat:
        raise MessageGone("The message stands in the group that this one was before.")
    return {"chat_id": chat, "message_id": _number(message)}


def _reply(part: Part, chat: str) -> dict[str, Any]:
    before, _, message = part.answers.rpartition(":")
    if not message.isdecimal() or before not in ("", chat):
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
    api = BotApi(url=url.rstrip("/"), token=token, http=needs.http)
    return Telegram(api, Moves(needs.kept, f"channel:telegram:{token.partition(':')[0]}"), _webhook(needs, token))


def _webhook(needs: Needs, token: str) -> Webhook | None:
    url, port = needs.options.get("webhook") or "", needs.options.get("webhook_port") or str(WEBHOOK_PORT)
    if not url:
        return None
    if not url.startswith("https://"):
        raise ConfigError(
            "gateway.channels.telegram.options.webhook begins with https://: Telegram brings nothing else."
        )
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError("gateway.channels.telegram.options.webhook_port is a number from 1 to 65535.")
    return Webhook(url=url, port=int(port), secret=secret_of(token))


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
        draft=30.0,
        largest_file=50_000_000,
        voice=True,
        mentions=True,
        hears_edits=True,
        fences=True,
    ),
    # core.telegram.org/bots/faq: about 30 messages a second in all, one a second in a chat, 20 a minute in a group. For
    # drafts it gives no figure; two a second stay well below what others were refused at (nine).
    pace=Pace(every=1 / 30, chat=1.0, group=3.0, edit=1.5, draft=0.5),
    secrets=("TELEGRAM_BOT_TOKEN",),
    setup=(
        "Talk to @BotFather in Telegram, send /newbot, choose a name; it answers with a token, TELEGRAM_BOT_TOKEN.",
        "For groups: /setprivacy at @BotFather, add the bot, and name the group's id (a number with a minus) in "
        "gateway.channels.telegram.groups.",
    ),
    make=make,
    options={
        "api_url": Option(doc="Address of the Bot API.", default="https://api.telegram.org"),
        "webhook": Option(
            doc="Where Telegram brings updates (https://...), which a proxy of yours leads to `webhook_port` of this "
            "machine; empty: they are polled."
        ),
        "webhook_port": Option(doc="Port of 127.0.0.1 for `webhook`.", default=str(WEBHOOK_PORT)),
    },
)
