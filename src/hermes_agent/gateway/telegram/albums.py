"""Albums: Telegram tells each picture of one as a message, and a person sent one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hermes_agent.gateway.inbound_events import Said


def album_of(update: Mapping[str, Any]) -> str:
    """The album that an update's message is of; empty: of none. A change of one picture stands for itself."""
    return str((update.get("message") or {}).get("media_group_id") or "")


def of_albums(updates: Sequence[Mapping[str, Any]]) -> int:
    """How many of them are of albums."""
    return sum(1 for update in updates if album_of(update))


def together(first: Said, more: Said) -> Said:
    """Two messages of an album as one, under the identity of the first: its words stand at any of the pictures."""
    return replace(
        first,
        text="\n".join(filter(None, (first.text, more.text))),
        media=(*first.media, *more.media),
        addressed=first.addressed or more.addressed,
    )
