"""A conversation made smaller for one model: what is sent of its older tool results, pictures and files, never what is
stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hermes_agent.core.messages import File, Image, Message, Part, Text, ToolResult

# How many of the last messages stay as they are when a conversation is shrunk once, and when it is shrunk twice.
KEPT = (8, 2)
LONGEST = 300
LEFT_OUT = " [...: the rest of this result is left out here; run the call again if it is needed]"


def shrunk(messages: Sequence[Message], times: int, upto: int) -> list[Message]:
    """The messages with the older of the first `upto` trimmed: long tool results to their first words, pictures and
    files to a line."""
    if not times:
        return list(messages)
    old = max(0, upto - KEPT[min(times, len(KEPT)) - 1])
    return [*(_trimmed(message) for message in messages[:old]), *messages[old:]]


def _trimmed(message: Message) -> Message:
    parts = tuple(_smaller(part) for part in message.parts)
    return (
        message
        if all(new is old for new, old in zip(parts, message.parts, strict=True))
        else replace(message, parts=parts)
    )


def _smaller(part: Part) -> Part:
    match part:
        case ToolResult():
            size = sum(len(piece.text) if isinstance(piece, Text) else len(piece.data) for piece in part.parts)
            if size <= LONGEST + len(LEFT_OUT):
                return part
            origin = next((piece.origin for piece in part.parts), None)
            words = Text(text=part.text[:LONGEST] + LEFT_OUT)
            return replace(part, parts=(words if origin is None else replace(words, origin=origin),))
        case Image(data=data) if data:
            return Text(text=f"[A picture ({part.media_type}) that is left out here.]", origin=part.origin)
        case File():
            return Text(text=f"[The file {part.name} that is left out here.]", origin=part.origin)
        case _:
            return part
