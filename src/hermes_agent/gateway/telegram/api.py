"""Telegram Bot API client (core.telegram.org/bots/api), with errors mapped to channel errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hermes_agent.core.chat import Attachment
from hermes_agent.gateway.channel import ChannelError, MessageGone, NeverHere, NotNow, OutcomeUnknown, TokenRefused
from hermes_agent.gateway.service import Service, form
from hermes_agent.host.http import Http

Plain = Any  # what JSON gives; parsed into values in this folder
PATIENCE = 30.0
"""Seconds for one answer, beside what a long poll waits."""
HTTP_ERROR = 500


class Unparsed(ChannelError):
    """Telegram rejected the formatting of a message; the text can be sent plain."""


class Unfit(ChannelError):
    """Telegram does not take a file by this method, or no voice messages there; it can be sent as a document."""


class Moved(ChannelError):
    """A Telegram group has migrated to the id `to`; the call did nothing."""

    def __init__(self, message: str, to: str) -> None:
        super().__init__(message)
        self.to = to


class Unanswerable(ChannelError):
    """The Telegram message to reply to was deleted; the text can be sent without a reply."""


class Unchanged(ChannelError):
    """An edit of a Telegram message had no effect: the message already has this content."""


REFUSALS: Mapping[type[ChannelError], tuple[str, ...]] = {
    Unchanged: ("message is not modified",),
    Unanswerable: ("message to be replied not found", "replied message not found", "reply message not found"),
    Unparsed: ("can't parse entities",),
    Unfit: ("photo_", "image_process_failed", "video_", "audio_", "animation_", "voice_", "wrong file type"),
    MessageGone: ("message to edit not found", "message can't be edited", "message to delete not found"),
}
"""What a refused call says -> what that means; every other one is for good."""


class BotApi:
    """HTTP client for the Telegram Bot API, for one bot at `url`."""

    def __init__(self, url: str, token: str, http: Http) -> None:
        self._url = url
        self._token = token
        self._service = Service(title=f"Telegram at {url}", http=http, judge=lambda answer, _: answer)

    async def call(
        self,
        method: str,
        arguments: Mapping[str, Plain],
        *,
        waits: float = 0.0,
        file: tuple[str, Attachment] | None = None,
    ) -> Plain:
        """Call a method and return its `result`; a `file` is one of the arguments. `waits`: seconds of a long poll.
        Raises `ChannelError`."""
        body = await form(*file, arguments) if file else msgspec.json.encode(arguments)
        answer = await self._service.call(
            "POST",
            f"{self._url}/bot{self._token}/{method}",
            content=body,
            media_type="application/json",
            patience=PATIENCE + waits,
        )
        return _result(answer.status, answer.body)

    async def fetch(self, file_id: str, most: int) -> bytes:
        """Download a received file as `Channel.fetch` does. Raises `ChannelError`."""
        found = await self.call("getFile", {"file_id": file_id})
        if not found.get("file_path"):
            raise NeverHere("Telegram does not give the file out.")
        return await self._service.fetch(f"{self._url}/file/bot{self._token}/{found['file_path']}", most)


def _result(status: int, body: bytes) -> Plain:
    try:
        answer = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise OutcomeUnknown(f"Telegram's answer is not JSON (HTTP {status}).") from error
    if not isinstance(answer, dict):
        raise OutcomeUnknown(f"Telegram's answer is not an object (HTTP {status}).")
    if answer.get("ok"):
        return answer.get("result")
    raise _failure(int(answer.get("error_code", status)), str(answer.get("description", "")), answer)


def _failure(code: int, words: str, answer: Mapping[str, Plain]) -> ChannelError:
    parameters = answer.get("parameters") or {}
    told = f"Telegram: {words}"
    if moved := parameters.get("migrate_to_chat_id"):
        return Moved(told, str(moved))
    match code:
        case 429:
            return NotNow(told, retry_after=float(parameters.get("retry_after", 1)))
        case 409:
            return NotNow(f"{told}. Another program uses this token, or a webhook is set.", retry_after=10.0)
        case 401 | 404:
            return TokenRefused(f"{told}. Check TELEGRAM_BOT_TOKEN; @BotFather knows it.")
        case _ if code >= HTTP_ERROR:
            return NotNow(told)
        case _:
            return _refusal(told)


def _refusal(told: str) -> ChannelError:
    lower = told.lower()
    for kind, signs in REFUSALS.items():
        if any(sign in lower for sign in signs):
            return kind(told)
    return NeverHere(told)
