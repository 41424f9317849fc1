"""Telegram channel: the Bot API by long polling or webhook, with topics, buttons, edits and files."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from hermes_agent.core.chat import Attachment, Conversation
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channel import (
    Abilities,
    Channel,
    Hear,
    Kind,
    Media,
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
from hermes_agent.gateway.chat_migration import ChatMigration
from hermes_agent.gateway.service import upload
from hermes_agent.gateway.telegram.api import BotApi, Moved, Unanswerable, Unchanged, Unfit, Unparsed
from hermes_agent.gateway.telegram.listening import POLL_SECONDS, Listening, Webhook, secret_of
from hermes_agent.gateway.telegram.updates import Me
from hermes_agent.gateway.telegram.writing import (
    Way,
    draft_id,
    formatted,
    keyboard,
    message_at,
    place,
    receipt_of,
    reply_to,
    unmeant,
    ways_of,
)

log = logging.getLogger(__name__)

Plain = Mapping[str, Any]  # arguments and answers of the Bot API
NO_PREVIEW: Plain = {"link_preview_options": {"is_disabled": True}}
WEBHOOK_PORT = 8443

T = TypeVar("T")


class Telegram(Channel):
    """`Channel` adapter for one Telegram bot."""

    def __init__(
        self, api: BotApi, moves: ChatMigration, webhook: Webhook | None = None, poll_seconds: float = POLL_SECONDS
    ) -> None:
        self._api = api
        self._moves = moves
        self._listening = Listening(api=api, moves=moves, webhook=webhook, poll_seconds=poll_seconds)
        self._me: Me | None = None

    async def listen(self, hear: Hear) -> None:
        await self._listening.follow(await self._who(), hear)

    async def fetch(self, media: Media, most: int) -> bytes:
        return await self._api.fetch(media.reference, most)

    async def send(self, to: Conversation, part: Part, key: str) -> str:  # noqa: ARG002  the Bot API has no keys
        async def there(chat: str) -> str:
            try:
                sent = await self._sent(place(to, chat) | reply_to(part, chat), part)
            except Unanswerable:  # In a topic the Bot API minds, whatever it was allowed.
                sent = await self._sent(place(to, chat), part)
            return receipt_of(to, chat, sent)

        return await self._there(to, there)

    async def _sent(self, arguments: Plain, part: Part) -> Plain:
        if part.file is None:
            return await self._text("sendMessage", {**arguments, **keyboard(part)}, part.text)
        *others, last = ways_of(part.file.media_type, (await upload(part.file)).size)
        for way in others:
            try:
                return await self._file(way, part.file, part.text, arguments)
            except Unfit as error:
                log.info("telegram takes a file as a document alone: %s", error)
        return await self._file(last, part.file, part.text, arguments)

    async def _file(self, way: Way, file: Attachment, caption: str, arguments: Plain) -> Plain:
        async def sent(words: Plain) -> Plain:
            result: Plain = await self._api.call(way.method, {**arguments, **words}, file=(way.field, file))
            return result

        return await _worded(sent, "caption", caption) if caption else await sent({})

    async def edit(self, to: Conversation, receipt: str, part: Part) -> None:
        async def there(chat: str) -> None:
            with suppress(Unchanged):
                await self._text("editMessageText", message_at(to, chat, receipt) | keyboard(part), part.text)

        await self._there(to, there)

    async def delete(self, to: Conversation, receipt: str) -> None:
        async def there(chat: str) -> None:
            await self._api.call("deleteMessage", message_at(to, chat, receipt))

        await self._there(to, there)

    async def draft(self, to: Conversation, text: str, key: str) -> None:
        """Private chats only; for every bot since Bot API 9.5 (March 2026)."""
        await self._there(to, lambda chat: self._draft({**place(to, chat), "draft_id": draft_id(key)}, text))

    async def _draft(self, arguments: Plain, text: str) -> None:
        try:
            await self._text("sendMessageDraft", arguments, text, {})
        except OutcomeUnknown as error:
            raise NotNow(str(error)) from error
        except TokenRefused as error:
            # A server that is older does not know the method, which it says as of an unknown token.
            raise NeverHere(f"This Bot API server shows no drafts. {error}") from error

    async def typing(self, to: Conversation) -> None:
        await self._there(to, lambda chat: self._api.call("sendChatAction", {**place(to, chat), "action": "typing"}))

    async def check(self) -> str:
        return f"@{(await self._who()).name}"

    async def _there(self, to: Conversation, do: Callable[[str], Awaitable[T]]) -> T:
        """Run a call with the chat's current id, and repeat it if the chat has migrated."""
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

    async def _text(self, method: str, arguments: Plain, text: str, quiet: Plain = NO_PREVIEW) -> Plain:
        async def call(words: Plain) -> Plain:
            result: Plain = await self._api.call(method, {**arguments, **words, **quiet})
            return result

        return await _worded(call, "text", text)


async def _worded(call: Callable[[Plain], Awaitable[Plain]], field: str, text: str) -> Plain:
    """Make a call with formatted text, or with plain text if the formatting is rejected."""
    try:
        return await call({field: formatted(text), "parse_mode": "MarkdownV2"})
    except Unparsed:
        log.info("telegram did not understand the format of a message; it is sent plain")
        return await call({field: unmeant(text)})


def make(needs: Needs) -> Channel:
    """Factory of the Telegram channel. Raises `ConfigError` without a token."""
    token = needs.secret("TELEGRAM_BOT_TOKEN")
    if not token:
        raise ConfigError("Telegram needs TELEGRAM_BOT_TOKEN: @BotFather gives one, `hermes secrets set` keeps it.")
    url = needs.options.get("api_url") or "https://api.telegram.org"
    api = BotApi(url=url.rstrip("/"), token=token, http=needs.http)
    return Telegram(
        api, ChatMigration(needs.kept, f"channel:telegram:{token.partition(':')[0]}"), _webhook(needs, token)
    )


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
        typing=5.0,
        draft=30.0,
        largest_file=50_000_000,
        hears_edits=True,
        fences=True,
    ),
    # core.telegram.org/bots/faq: about 30 messages a second in all, one a second in a chat, 20 a minute in a group. For
    # drafts it gives no figure; two a second stay well below what others were refused at (nine).
    pace=Pace(every=1 / 30, chat=1.0, group=3.0, edit=1.5, draft=0.5),
    secrets=("TELEGRAM_BOT_TOKEN",),
    person=(r"-?\d+", "it is a number, which `hermes pairing list` shows of who wrote"),
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
