"""What a model may be shown: which pictures and documents it takes, and what it is told in place of the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import File, Image, Message, Part, Text, ToolResult
from hermes_agent.providers.reading import written

MEGABYTE = 1_000_000
# How the base64 of a picture begins, whatever it is called.
BEGINNINGS = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRules:
    """What a dialect takes in one request: media types, the bytes of one picture, and how many; None: no limit."""

    types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
    largest: int | None = 20 * MEGABYTE
    most: int | None = None


ANY_PICTURE = PictureRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What one model takes: no pictures at all, those that `rules` allow, documents."""

    images: bool = True
    files: bool = True
    rules: PictureRules = ANY_PICTURE

    def hidden(self, pictures: int) -> int:
        """How many of the first pictures of a conversation with so many are left out: half of the limit at a time, so
        that what was sent stays what it was for a while."""
        most = self.rules.most
        if most is None or pictures <= most:
            return 0
        step = max(1, most // 2)
        return -(-(pictures - most) // step) * step

    def takes(self, part: Part) -> bool:
        """Whether this is a picture that could be shown."""
        return isinstance(part, Image) and not self._refuses(_true(part))

    def shown(self, part: Image | File) -> Image | File | Text:
        """The part as it may be shown, or words that say what is missing."""
        if isinstance(part, File):
            if self.files or written(part) is not None:
                return part
            return Text(
                text=f"[A document, {part.name} ({part.media_type}), that this model cannot read.]", origin=part.origin
            )
        part = _true(part)
        reason = self._refuses(part)
        return Text(text=f"[A picture ({part.media_type}) {reason}.]", origin=part.origin) if reason else part

    def _refuses(self, part: Image) -> str:
        if not self.images:
            return "that this model cannot see"
        if part.url:
            return ""
        if part.media_type not in self.rules.types:
            return "of a kind that this model cannot see"
        size = len(part.data) * 3 // 4
        if self.rules.largest is not None and size > self.rules.largest:
            most = self.rules.largest / MEGABYTE
            return f"of {size / MEGABYTE:.1f} MB, which is more than the {most:g} MB that this model takes"
        return ""


def earlier(part: Image) -> Text:
    """Words in place of one of the first pictures of a conversation that has too many."""
    return Text(text=f"[An earlier picture ({part.media_type}), left out: there are too many.]", origin=part.origin)


def pictures_in(messages: Iterable[Message], sight: Sight) -> int:
    """How many pictures there are that could be shown, also in the results of tools."""
    parts = (part for message in messages for part in message.parts)
    every = (one for part in parts for one in (part.parts if isinstance(part, ToolResult) else (part,)))
    return sum(sight.takes(one) for one in every)


def _true(part: Image) -> Image:
    """The picture under the media type that its bytes have: a provider refuses another name."""
    if part.url:
        return part
    found = next((kind for start, kind in BEGINNINGS.items() if part.data.startswith(start)), part.media_type)
    return part if found == part.media_type else replace(part, media_type=found)
