"""How a file goes out over the Bot API: as what people see or hear at once where Telegram takes it, else a document."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.outbound import Attachment
from hermes_agent.gateway.channel import NeverHere

MB = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A method that sends a file, its argument for it, and the bytes that it takes."""

    method: str
    field: str
    largest: int = 50 * MB


DOCUMENT = Way(method="sendDocument", field="document")
PHOTO = Way(method="sendPhoto", field="photo", largest=10 * MB)
VIDEO = Way(method="sendVideo", field="video")
AUDIO = Way(method="sendAudio", field="audio")
VOICE = Way(method="sendVoice", field="voice")
ANIMATION = Way(method="sendAnimation", field="animation")
WAYS: Mapping[str, Way] = {
    "image/jpeg": PHOTO,
    "image/png": PHOTO,
    "image/gif": ANIMATION,
    "video/mp4": VIDEO,
    "audio/mpeg": AUDIO,
    "audio/mp4": AUDIO,
    "audio/x-m4a": AUDIO,
    "audio/mp4a-latm": AUDIO,
    "audio/ogg": VOICE,
    "audio/opus": VOICE,
}
"""Media types -> what core.telegram.org/bots/api says takes them; every other file is a document."""


async def ways_of(file: Attachment) -> tuple[Way, ...]:
    """The ways to be tried, best first. Raises `NeverHere` where the file is not there."""
    way = WAYS.get(file.media_type, DOCUMENT)
    try:
        size = (await asyncio.to_thread(Path(file.path).stat)).st_size
    except OSError as error:
        raise NeverHere(f"The file {file.name} cannot be read: {error.strerror}.") from error
    return (way, DOCUMENT) if way is not DOCUMENT and size <= way.largest else (DOCUMENT,)
