"""Results of MCP calls as parts of an answer; everything in them is outside text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from hermes_agent.core.messages import File, Image, Origin, Text
from hermes_agent.core.tool import Answer

LABEL = Origin.TOOL
Part = Text | Image | File


def answer_of(result: Any) -> Answer:  # noqa: ANN401 - a result of the SDK, whose import takes half a second
    """The answer of a tool."""
    parts = tuple(part for block in result.content for part in parts_of(block))
    if not parts and result.structured_content is not None:
        parts = (_text(json.dumps(result.structured_content, ensure_ascii=False)),)
    return Answer(parts=parts or (_text("(no output)"),), is_error=bool(result.is_error))


def parts_of(block: Any) -> Iterator[Part]:  # noqa: ANN401 - as above
    """The parts of one block of content."""
    match block.type:
        case "text":
            yield _text(block.text)
        case "image":
            yield Image(media_type=block.mime_type, data=block.data, origin=LABEL)
        case "audio":
            yield File(name="audio", media_type=block.mime_type, data=block.data, origin=LABEL)
        case "resource_link":
            yield _text(f"[resource {block.uri}: {block.title or block.name}]")
        case "resource":
            yield contents(block.resource)
        case _:
            yield _text(f"[{block.type}]")


def contents(resource: Any) -> Part:  # noqa: ANN401 - as above
    """The contents of a resource."""
    text = getattr(resource, "text", None)
    if text is not None:
        return _text(text)
    kind, name = resource.mime_type or "application/octet-stream", PurePosixPath(urlsplit(str(resource.uri)).path).name
    if kind.startswith("image/"):
        return Image(media_type=kind, data=resource.blob, origin=LABEL)
    return File(name=name or "resource", media_type=kind, data=resource.blob, origin=LABEL)


def all_contents(found: Iterable[Any]) -> Answer:
    """The answer that holds these contents of resources."""
    return Answer(parts=tuple(map(contents, found)) or (_text("(empty)"),))


def _text(text: str) -> Text:
    return Text(text=text, origin=LABEL)
