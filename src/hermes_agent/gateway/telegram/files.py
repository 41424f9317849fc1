"""How a file goes out over the Bot API: as what people see or hear at once where Telegram takes it, else a document."""

from __future__ import annotations

from collections.abc import Mapping

from hermes_agent.core.dataclass import dataclass

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


def ways_of(media_type: str, size: int) -> tuple[Way, ...]:
    """The ways to be tried, best first."""
    way = WAYS.get(media_type, DOCUMENT)
    return (way, DOCUMENT) if way is not DOCUMENT and size <= way.largest else (DOCUMENT,)
