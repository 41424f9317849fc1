"""Slack protocol: parses events (messages, edits, buttons, slash commands), renders mrkdwn, and calls the Web API."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from hermes_agent.core.chat import Conversation
from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import (
    ChannelError,
    Heard,
    Media,
    MessageGone,
    NeverHere,
    NotNow,
    OutcomeUnknown,
    Pressed,
    Removed,
    Said,
    Sender,
    TokenRefused,
    Withdrawn,
)
from hermes_agent.gateway.dispatcher import is_control
from hermes_agent.gateway.service import FETCH_SECONDS, Service, Upload
from hermes_agent.gateway.text.markdown import Dialect, rendered

PLATFORM = "slack"
BUTTON = "hermes"
MENTION = re.compile(r"<@([UW][A-Z0-9]{5,})\b")
SPOKEN = frozenset({"", "file_share", "thread_broadcast", "me_message", "bot_message"})
LEFT = frozenset({"channel_left", "group_left", "channel_deleted", "channel_archive", "group_archive", "group_deleted"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """The agent's own user and bot id in a Slack workspace; `threads`: a message to it in a channel starts a thread."""

    user: str
    bot: str
    threads: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Parser of Slack events into gateway events. `name` looks up a user's name, `title` a channel's, `file` the facts
    of a file; `now` is the time."""

    own: Own
    name: Callable[[str], Awaitable[str]]
    title: Callable[[str], Awaitable[str]]
    file: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
    now: Callable[[], float]

    async def heard(self, kind: str, payload: Mapping[str, Any]) -> Heard | None:
        """Parse an envelope's payload; None if it is irrelevant."""
        match kind:
            case "events_api":
                return await self._event(payload.get("event") or {})
            case "interactive":
                return await self._pressed(payload)
            case "slash_commands":
                return self._command(payload)
        return None

    async def _event(self, event: Mapping[str, Any]) -> Heard | None:
        kind, channel = event.get("type"), str(event.get("channel", ""))
        if kind in ("message", "app_mention"):
            return await self._message(event, channel)
        if kind in LEFT:
            return Removed(where=_where(channel, ""), reason=str(kind))
        if kind == "member_left_channel" and event.get("user") == self.own.user:
            return Removed(where=_where(channel, ""), reason="The agent was removed from the channel.")
        return None

    async def _message(self, event: Mapping[str, Any], channel: str) -> Heard | None:
        match event.get("subtype", ""):
            case "message_changed":
                now, before = event.get("message") or {}, event.get("previous_message") or {}
                if now.get("subtype") == "tombstone":  # Others have answered it in its thread, which stays.
                    return self._withdrawn(channel, now.get("ts"), before)
                if now.get("text") == before.get("text"):
                    return None  # Slack added the preview of a link.
                return await self._said(now, channel, edited=_edited(now) or str(event.get("ts") or "changed"))
            case "message_deleted":
                return self._withdrawn(channel, event.get("deleted_ts"), event.get("previous_message") or {})
            case subtype if subtype in SPOKEN:
                # A mention that an edit adds is told as an event of its own too.
                return await self._said(event, channel, edited=_edited(event))
        return None

    def _withdrawn(self, channel: str, stamp: object, before: Mapping[str, Any]) -> Withdrawn | None:
        """Parse a deletion. Only the sender and workspace admins can delete; Slack does not say who did."""
        if before.get("user") == self.own.user or (before.get("bot_id") or "") == self.own.bot:
            return None
        return Withdrawn(source_id=f"{channel}:{stamp}", where=_where(channel, str(before.get("thread_ts", ""))))

    async def _said(self, event: Mapping[str, Any], channel: str, *, edited: str = "") -> Said | None:
        user, bot = str(event.get("user", "")), str(event.get("bot_id", ""))
        stamp, written = str(event.get("ts", "")), str(event.get("text", ""))
        if not stamp or user == self.own.user or (bot and bot == self.own.bot) or not (user or bot):
            return None
        addressed = f"<@{self.own.user}>" in written or event.get("parent_user_id") == self.own.user
        thread = str(event.get("thread_ts", ""))
        if not thread and self.own.threads and addressed and not channel.startswith("D"):
            thread = stamp
        return Said(
            source_id=f"{channel}:{stamp}",
            where=_where(channel, thread),
            sender=Sender(user=user or bot, name=await self.name(user) if user else "", bot=bool(bot)),
            text=plain(written, self.own.user),
            at=float(stamp),
            media=tuple([self._media(await self.file(file)) for file in event.get("files") or ()]),
            addressed=addressed,
            edited=edited,
            title="" if channel.startswith("D") else await self.title(channel),
            named=tuple(MENTION.findall(written)),
        )

    def _media(self, file: Mapping[str, Any]) -> Media:
        url = str(file.get("url_private_download") or file.get("url_private") or "")
        kind = str(file.get("mimetype") or "application/octet-stream")
        return Media(
            name=str(file.get("name") or file.get("id") or "file"),
            media_type=kind,
            size=int(file.get("size") or 0),
            reference=url,
            voice=file.get("subtype") == "slack_audio",
        )

    async def _pressed(self, payload: Mapping[str, Any]) -> Pressed | None:
        actions, user = payload.get("actions") or [], payload.get("user") or {}
        if payload.get("type") != "block_actions" or not actions:
            return None
        action, place = actions[0], payload.get("container") or {}
        mark, _, rest = str(action.get("action_id", "")).partition(":")
        slot, _, choice = rest.partition(":")
        if mark != BUTTON or not slot.isdecimal() or not choice.isdecimal():
            return None
        channel, stamp = str(place.get("channel_id", "")), str(action.get("action_ts", "0"))
        return Pressed(
            source_id=f"{channel}:{place.get('message_ts')}:{stamp}:{user.get('id')}",
            where=_where(channel, str(place.get("thread_ts", ""))),
            sender=Sender(user=str(user.get("id", "")), name=str(user.get("username", ""))),
            slot=int(slot),
            choice=int(choice),
            at=float(stamp),
        )

    def _command(self, payload: Mapping[str, Any]) -> Said | None:
        """Parse a slash command: `/hermes stop` means `/stop`; others keep their name."""
        command, words = str(payload.get("command", "")), str(payload.get("text", "")).strip()
        if not command.startswith("/") or not payload.get("trigger_id"):
            return None
        text = f"/{words.removeprefix('/')}" if command == "/hermes" else f"{command} {words}".strip()
        return Said(
            source_id=f"command:{payload['trigger_id']}",
            where=_where(str(payload.get("channel_id", "")), ""),
            sender=Sender(user=str(payload.get("user_id", "")), name=str(payload.get("user_name", ""))),
            text="/help" if text == "/" else text,
            at=self.now(),
            addressed=True,
        )


def place_of(message: Mapping[str, Any], own: str) -> tuple[str, bool]:
    """The channel of an envelope, and whether it is an urgent command."""
    payload, kind = message.get("payload") or {}, message.get("type")
    event = payload.get("event") or {}
    chat = event.get("channel") or payload.get("channel_id") or (payload.get("container") or {}).get("channel_id")
    text = event.get("text", "") if kind == "events_api" else payload.get("text", "")
    words = f"/{text}" if kind == "slash_commands" else plain(str(text), own)
    return str(chat or ""), kind == "interactive" or is_control(words)


def _edited(message: Mapping[str, Any]) -> str:
    """The stamp of a message's last edit; empty if never edited."""
    return str((message.get("edited") or {}).get("ts", ""))


def _where(channel: str, thread: str) -> Conversation:
    """The conversation; channel ids that begin with D are private chats."""
    return Conversation(
        platform=PLATFORM, chat_kind="dm" if channel.startswith("D") else "group", chat=channel, thread=thread
    )


HTTP = re.compile(r"https?://")
MARK = re.compile(r"<([^<>]+)>")


def escaped(text: str) -> str:
    """Escape text so that nothing in it is markup or a mention."""
    return text.replace("\0", "").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _link(shown: str, address: str) -> str:
    return (
        f"<{escaped(address).replace('|', '%7C')}|{shown}>" if HTTP.match(address) else f"{shown} ({escaped(address)})"
    )


MRKDWN = Dialect(escape=escaped, code=escaped, link=_link)


def mrkdwn(text: str) -> str:
    """Convert Markdown to Slack's mrkdwn."""
    return rendered(text, MRKDWN)


def plain(text: str, own: str) -> str:
    """Message text without markup and without the mention of `own` (a user id)."""

    def mark(found: re.Match[str]) -> str:
        inside, _, label = found[1].partition("|")
        if inside == f"@{own}":
            return ""
        if inside.startswith(("@", "#", "!")):
            return f"{inside[0].replace('!', '@')}{label or inside[1:].removeprefix('subteam^')}"
        return f"{label} ({inside})" if label and label not in inside else inside

    text = MARK.sub(mark, text).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return text.strip()


FORM = "application/x-www-form-urlencoded"
TOKEN = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "org_login_required"}
    | {"not_allowed_token_type", "app_uninstalled"}
)
LATER = frozenset({"ratelimited", "rate_limited", "service_unavailable", "request_timeout", "team_added_to_org"})
OPEN = frozenset({"fatal_error", "internal_error"})
"""Slack says of these that some of it may have been done."""
GONE = frozenset(
    {"message_not_found", "cant_update_message", "cant_delete_message", "edit_window_closed", "file_not_found"}
    | {"file_deleted", "compliance_exports_prevent_deletion", "no_item_specified"}
)


class Web:
    """Slack Web API client with one token. `base`: `https://slack.com/api`, without a trailing slash."""

    def __init__(self, service: Service, base: str) -> None:
        self._service = service
        self._base = base

    async def call(self, method: str, *, reads: bool = False, **values: Any) -> dict[str, Any]:  # noqa: ANN401  whatever JSON holds
        """Call a method; arguments that are None are omitted. Raises `ChannelError`."""
        answer = await self._service.call(
            "POST", f"{self._base}/{method}", content=form(values), media_type=FORM, reads=reads
        )
        found = answer.values()
        if not found.get("ok"):
            raise meaning(str(found.get("error", "unknown_error")), found, reads=reads)
        return found

    async def upload(self, url: str, file: Upload) -> None:
        """Upload a file to the URL that Slack gave; it is not posted yet."""
        answer = await self._service.call("POST", url, content=file, reads=True)
        if answer.status >= 300:
            raise (NotNow if answer.status == 408 else NeverHere)(f"Slack does not take the file ({answer.status}).")

    async def download(self, url: str, most: int) -> bytes:
        """Download a file."""
        answer = await self._service.call("GET", url, reads=True, most=most, patience=FETCH_SECONDS)
        if answer.status != 200 or (answer.headers.get("content-type") or "").startswith("text/html"):
            raise NeverHere("Slack does not give the file out: the app needs the scope files:read.")
        return answer.body


def form(values: Mapping[str, Any]) -> bytes:
    """Form-encode arguments, with lists and objects as JSON, as every Slack method accepts."""
    given = {name: value for name, value in values.items() if value is not None}
    return urlencode({n: value if isinstance(value, str) else json.dumps(value) for n, value in given.items()}).encode()


def meaning(name: str, found: Mapping[str, Any], *, reads: bool = False) -> ChannelError:
    """Map a Slack error code to a `ChannelError`."""
    if name in TOKEN:
        return TokenRefused(
            f"Slack does not know the token any more ({name}): see SLACK_BOT_TOKEN and SLACK_APP_TOKEN."
        )
    if name in LATER or (reads and name in OPEN):
        return NotNow(f"Slack wants to be asked later ({name}).")
    if name in OPEN:
        return OutcomeUnknown(f"Slack failed ({name}).")
    if name in GONE:
        return MessageGone(f"The message is gone or stays as it is ({name}).")
    if name == "missing_scope":
        return NeverHere(f"The Slack app needs the scope {found.get('needed', '')}.")
    return NeverHere(f"Slack refuses it: {name.replace('_', ' ')}.")
