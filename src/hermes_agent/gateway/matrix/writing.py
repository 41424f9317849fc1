"""A message of the agent as the content of a Matrix event: text, HTML, choices, files, and what it relates to."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from typing import Any

from hermes_agent.core.inbound import Conversation
from hermes_agent.core.outbound import Attachment
from hermes_agent.gateway.channel import Part
from hermes_agent.gateway.html import html

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
    """A text, with its choices listed. Nobody is mentioned by it, whatever it says."""
    text = CONTROLS.sub("", part.text)
    if part.buttons:
        choices = "\n".join(f"{sign} {button.label}" for sign, button in zip(SIGNS, part.buttons, strict=False))
        text = f"{text}\n\n{choices}".strip()
    plain: Content = {"msgtype": "m.text", "body": text, "m.mentions": {}, SLOT: part.slot if part.buttons else 0}
    formatted = {**plain, "format": "org.matrix.custom.html", "formatted_body": html(text).strip()}
    return formatted if len(json.dumps(formatted, ensure_ascii=False).encode()) <= LARGEST else plain


def file(part: Part, sent: Attachment, size: int, place: Mapping[str, Any]) -> Content:
    """A file that was uploaded; `place` says where: its `url`, or its `file` where it is encrypted."""
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
    """The content in the thread that it belongs to, or as a reply to what it answers."""
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
    """The content as the new one of an event."""
    return {
        "msgtype": "m.text",
        "body": f"* {content['body'][:FALLBACK]}",
        "m.mentions": {},
        SLOT: 0,
        "m.new_content": content,
        "m.relates_to": {"rel_type": "m.replace", "event_id": receipt},
    }


def reaction(event: str, sign: str) -> Content:
    """A sign under an event."""
    return {"m.relates_to": {"rel_type": "m.annotation", "event_id": event, "key": sign}}


def transaction(key: str) -> str:
    """The transaction id of what is sent under a key: a homeserver makes one event of all requests with one id."""
    return f"hermes-{hashlib.sha256(key.encode()).hexdigest()[:40]}"


def once() -> str:
    """A transaction id of what may be done twice."""
    return f"hermes-{secrets.token_hex(16)}"
