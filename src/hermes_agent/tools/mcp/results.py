"""Results of MCP calls as parts of an answer; everything in them is outside text."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from hermes_agent.core.messages import File, Image, Origin, Text
from hermes_agent.core.tool import Answer
from hermes_agent.tools.files.content import image_type

LABEL = Origin.TOOL
MOST_FILES, LARGEST_PICTURE = 20, 5 << 20
"""Pictures and files of one answer; bytes of a picture, a larger one is a file."""
Part = Text | Image | File


def answer_of(result: Any) -> Answer:  # noqa: ANN401 - a result of the SDK, whose import takes half a second
    """The answer of a tool."""
    blocks = [part for block in result.content for part in parts_of(block)]
    if not blocks and result.structured_content is not None:
        blocks = [_text(json.dumps(result.structured_content, ensure_ascii=False))]
    return Answer(parts=joined(blocks, "(no output)"), is_error=bool(result.is_error))


def joined(parts: Iterable[Part], nothing: str) -> tuple[Part, ...]:
    """The parts with texts that follow each other as one, so that what is too large is cut and saved as a whole."""
    found: list[Part] = []
    files = 0
    for part in parts:
        files += not isinstance(part, Text)
        last = found[-1] if found else None
        if isinstance(part, Text) and isinstance(last, Text):
            found[-1] = _text(f"{last.text}\n{part.text}")
        elif isinstance(part, Text) or files <= MOST_FILES:
            found.append(part)
    if files > MOST_FILES:
        found.append(_text(f"[{files - MOST_FILES} more files left out]"))
    return tuple(found) or (_text(nothing),)


def parts_of(block: Any) -> Iterator[Part]:  # noqa: ANN401 - as above
    """The parts of one block of content."""
    match block.type:
        case "text":
            yield _text(block.text)
        case "image" | "audio":
            yield _file(block.type, block.mime_type, block.data)
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
    name = PurePosixPath(urlsplit(str(resource.uri)).path).name
    return _file(name or "resource", resource.mime_type or "application/octet-stream", resource.blob)


def all_contents(found: Iterable[Any]) -> Answer:
    """The answer that holds these contents of resources."""
    return Answer(parts=joined(map(contents, found), "(empty)"))


def _file(name: str, kind: str, data: str) -> Part:
    """A file by its bytes; a picture counts as one by them alone, since a provider refuses all of a conversation with
    a broken one."""
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError:
        return _text(f"[{name}, {kind}: its data is damaged]")
    found = image_type(content[:16])
    if found and len(content) <= LARGEST_PICTURE:
        return Image(media_type=found, data=data, origin=LABEL)
    if kind.startswith("text/") or kind.endswith(("json", "xml", "yaml")):
        return _text(content.decode("utf-8", "replace"))
    return File(name=name, media_type=kind, data=data, origin=LABEL)


def _text(text: str) -> Text:
    return Text(text=text, origin=LABEL)
