"""Matrix client-server API: HTTP calls with error mapping, safe access to JSON, and event contents."""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from hermes_agent.core.chat import Attachment, Conversation
from hermes_agent.gateway.channel import ChannelError, MessageGone, NeverHere, Part, TokenRefused
from hermes_agent.gateway.service import Answer, Service
from hermes_agent.gateway.text.markdown import html

CLIENT, MEDIA = "_matrix/client", "_matrix/media/v3"
GIVEN_OUT = "_matrix/client/v1/media/download"
REFUSED = frozenset({"M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED", "M_USER_LOCKED", "M_USER_SUSPENDED"})
ABSENT = frozenset({"M_NOT_FOUND", "M_UNKNOWN", "M_INVALID_PARAM"})
"""What servers say of an event that they do not know; Synapse says M_UNKNOWN where a relation leads to none."""


class Client:
    """HTTP client for one Matrix account on its homeserver."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def call(
        self,
        method: str,
        path: str,
        content: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        reads: bool = False,
        version: str = "v3",
    ) -> dict[str, Any]:
        """Call an endpoint under `/_matrix/client/VERSION`. Raises `ChannelError`; `MessageGone` if the named thing
        does not exist."""
        question = f"?{urlencode(query)}" if query else ""
        return await self._service.ask(method, f"{CLIENT}/{version}/{path}{question}", content, reads=reads)

    async def upload(self, name: str, media_type: str, content: bytes) -> str:
        """Upload a file; returns its `mxc:` URI. It is not posted yet."""
        url = f"{self._service.base}/{MEDIA}/upload?{urlencode({'filename': name})}"
        answer = await self._service.call("POST", url, content=content, media_type=media_type, reads=True)
        if answer.status >= 400:
            raise meaning(answer)
        return str(answer.values()["content_uri"])

    async def download(self, address: str, most: int) -> bytes:
        """Download an `mxc:` URI."""
        scheme, _, rest = address.partition("://")
        server, _, id_ = rest.partition("/")
        if scheme != "mxc" or not server or not id_ or "/" in id_:
            raise NeverHere("The file has no address of Matrix.")
        return await self._service.fetch(f"{self._service.base}/{GIVEN_OUT}/{joined(server, id_)}", most)


def joined(*parts: str) -> str:
    """Join path segments with escaping, as Matrix ids contain reserved characters."""
    return "/".join(quote(part, safe="", errors="replace") for part in parts)


def meaning(answer: Answer) -> ChannelError:
    """Map an error response (status 400 and above) to a `ChannelError`."""
    code, words = (str(answer.fields.get(name, "")) for name in ("errcode", "error"))
    if code in REFUSED:
        return TokenRefused(f"The homeserver does not accept MATRIX_ACCESS_TOKEN ({code}: {words}).")
    if code in ABSENT:
        return MessageGone(f"It is not there ({code}: {words}).")
    if code == "M_TOO_LARGE":
        return NeverHere("It is too large for this homeserver.")
    return NeverHere(f"The homeserver refuses it: {answer.status} {words} ({code}).")


Event = Mapping[str, Any]
HALVES = re.compile("[\ud800-\udfff]")


def table(value: object) -> Event:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def inside(value: object, *names: str) -> Event:
    """The nested object at this path, else an empty one."""
    for name in names:
        value = table(value).get(name)
    return table(value)


def tables(value: object) -> list[Event]:
    """The objects of a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text(value: object) -> str:
    """The value if it is a string, with lone surrogates replaced; else empty."""
    return HALVES.sub("\ufffd", value) if isinstance(value, str) else ""


def number(value: object) -> float:
    """The value if it is a finite number, else 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    try:
        return float(value) if math.isfinite(value) else 0.0
    except OverflowError:
        return 0.0


def count(value: object) -> int:
    """The value if it is a positive integer, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


SIGNS = (*(f"{number}\ufe0f\N{COMBINING ENCLOSING KEYCAP}" for number in range(1, 10)), "\N{KEYCAP TEN}")
"""The reactions that stand for buttons, in their order."""
SLOT = "hermes.slot"
"""Where an event names the slot whose choices it shows (0: none); it also says that a program wrote it."""
LARGEST = 45_000
"""Bytes of an event's content: 65,536 is the most of an event, a third of which encryption takes."""
FALLBACK = 500
"""Characters of an edit that programs show which know nothing of edits."""
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
KINDS = {"image": "m.image", "audio": "m.audio", "video": "m.video"}

Content = dict[str, Any]


def words(part: Part) -> Content:
    """Content of a text message, with its choices listed. It mentions nobody."""
    text = CONTROLS.sub("", part.text)
    if part.buttons:
        choices = "\n".join(f"{sign} {button.label}" for sign, button in zip(SIGNS, part.buttons, strict=False))
        text = f"{text}\n\n{choices}".strip()
    plain: Content = {"msgtype": "m.text", "body": text, "m.mentions": {}, SLOT: part.slot if part.buttons else 0}
    formatted = {**plain, "format": "org.matrix.custom.html", "formatted_body": html(text).strip()}
    return formatted if len(json.dumps(formatted, ensure_ascii=False).encode()) <= LARGEST else plain


def file(part: Part, sent: Attachment, size: int, place: Mapping[str, Any]) -> Content:
    """Content of a file message; `place` holds its `url`, or its `file` if encrypted."""
    kind = KINDS.get(sent.media_type.partition("/")[0], "m.file")
    return {
        "msgtype": kind,
        "body": CONTROLS.sub("", part.text) or sent.name,
        "filename": sent.name,
        "info": {"mimetype": sent.media_type, "size": size},
        "m.mentions": {},
        SLOT: 0,
        **place,
    }


def placed(content: Content, to: Conversation, answers: str) -> Content:
    """The content with its thread or reply relation."""
    if to.thread:
        relation: Content = {
            "rel_type": "m.thread",
            "event_id": to.thread,
            "is_falling_back": not answers,
            "m.in_reply_to": {"event_id": answers or to.thread},
        }
    elif answers:
        relation = {"m.in_reply_to": {"event_id": answers}}
    else:
        return content
    return {**content, "m.relates_to": relation}


def changed(content: Content, receipt: str) -> Content:
    """The content as an edit of an event."""
    return {
        "msgtype": "m.text",
        "body": f"* {content['body'][:FALLBACK]}",
        "m.mentions": {},
        SLOT: 0,
        "m.new_content": content,
        "m.relates_to": {"rel_type": "m.replace", "event_id": receipt},
    }


def reaction(event: str, sign: str) -> Content:
    """Content of a reaction to an event."""
    return {"m.relates_to": {"rel_type": "m.annotation", "event_id": event, "key": sign}}


def transaction(key: str) -> str:
    """Deterministic transaction id for a key, by which the homeserver deduplicates requests."""
    return f"hermes-{hashlib.sha256(key.encode()).hexdigest()[:40]}"


def once() -> str:
    """A random transaction id, for calls that may be repeated."""
    return f"hermes-{secrets.token_hex(16)}"
