"""A prompt of an editor as parts of a message: words, pictures, files and what the editor holds of them."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from acp import schema

from hermes_agent.app.folder_trust import FolderLabels
from hermes_agent.app.intake import LARGEST_PICTURE, Part, image_type
from hermes_agent.app.system import System
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import File, Image, Origin, Text

Block: TypeAlias = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)
LARGEST_BLOB, MOST_PARTS = 32 << 20, 500
FILE = "file://"


class PromptRefused(HermesError):
    """A prompt cannot be taken as it is."""


async def parts_of(blocks: Sequence[Block], system: System, workspace: str, session: str) -> tuple[Part, ...]:
    """The parts of a prompt, with the label of where each came from. Raises `PromptRefused`."""
    if len(blocks) > MOST_PARTS:
        raise PromptRefused(f"The prompt has {len(blocks):,} parts; at most {MOST_PARTS}: name a folder instead.")
    who = Origin(system.owner.standing.value)
    labels = await asyncio.to_thread(system.folders.labels, workspace, session)
    parts = [await _part(each, who, labels) for each in blocks]
    if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
        raise PromptRefused("The prompt says nothing: give it a text, a picture or a file.")
    return tuple(parts)


async def _part(found: Block, who: Origin, labels: FolderLabels) -> Part:
    match found:
        case schema.TextContentBlock(text=text):
            return Text(text=text, origin=who)
        case schema.ImageContentBlock(data=data):
            return _picture(data, "The picture")
        case schema.AudioContentBlock():
            raise PromptRefused("This agent takes no audio: write what was said.")
        case schema.ResourceContentBlock(uri=uri):
            return Text(text=f"\n[File: {path_in(uri)}]\n", origin=await _label(uri, labels))
        case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents(uri=uri, text=text)):
            return Text(text=f"\n{path_in(uri)}:\n{text}\n", origin=await _label(uri, labels))
        case schema.EmbeddedResourceContentBlock(resource=schema.BlobResourceContents(uri=uri, blob=blob) as resource):
            name, media = Path(path_in(uri)).name or "file", resource.mime_type or "application/octet-stream"
            if media.startswith("image/"):
                return _picture(blob, name)
            if len(_decoded(blob, name)) > LARGEST_BLOB:
                raise PromptRefused(f"{name} has more than {LARGEST_BLOB:,} bytes: name its path instead.")
            return File(name=name, media_type=media, data=blob, origin=await _label(uri, labels))
    raise PromptRefused(f"The prompt has a part of an unknown kind ({type(found).__name__}).")


def _picture(data: str, name: str) -> Image:
    content = _decoded(data, name)
    if not (media := image_type(content)):
        raise PromptRefused(f"{name} is no PNG, JPEG, GIF or WebP: convert it, or name its path.")
    if len(content) > LARGEST_PICTURE:
        size = f"{len(content):,} bytes; at most {LARGEST_PICTURE:,}"
        raise PromptRefused(f"{name} has {size} can be looked at: make it smaller.")
    return Image(media_type=media, data=data, origin=Origin.FILE)


def _decoded(data: str, name: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise PromptRefused(f"{name} is damaged: it is not base64.") from error


def path_in(uri: str) -> str:
    """The path of a `file:` address, on one line; any other address as it is."""
    found = uri
    if uri.startswith(FILE):
        with suppress(ValueError):
            found = unquote(urlsplit(uri).path) or uri
    return " ".join(found.split())


async def _label(uri: str, labels: FolderLabels) -> Origin:
    """What a file counts as: the workspace's where it lies in a trusted folder, as if a tool had read it."""
    path = path_in(uri)
    is_ours = uri.startswith(FILE) and path.startswith("/") and await labels.is_trusted([path])
    return Origin.WORKSPACE if is_ours else Origin.FILE
