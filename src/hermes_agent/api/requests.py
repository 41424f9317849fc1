"""Messages in OpenAI's request formats: their schemas, and conversion to and from Hermes message parts."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Annotated, Any, Literal

import msgspec

from hermes_agent.api.problems import bad
from hermes_agent.core.chat import Principal
from hermes_agent.core.messages import File, Image, Origin, Text

DATA_URL = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)(?:;[\w=.+-]+)*;base64,(?P<data>[A-Za-z0-9+/=\s]*)")
Part = Text | Image | File


def described(**more: object) -> msgspec.Meta:
    """JSON schema keywords that the OpenAPI description shows and the code validates itself."""
    return msgspec.Meta(extra_json_schema=more)


BASE64 = r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
DATA = rf"data:[\w.+-]+/[\w.+-]+(;[\w=.+-]+)*;base64,{BASE64}"
Address = Annotated[str, described(pattern=f"^(https?://|{DATA}$)")]
Data = Annotated[str, described(pattern=f"^{DATA}$")]
NoItems = Annotated[list[Any] | None, described(maxItems=0)]


class ImageUrl(msgspec.Struct, kw_only=True):
    """URL of a picture: `https://...`, or `data:image/png;base64,...`."""

    url: Address


class FileData(msgspec.Struct, kw_only=True):
    """Name and content of a file in a chat message; the content is `data:TYPE;base64,...`."""

    file_data: Data
    filename: str = "file"


class TextPart(msgspec.Struct, kw_only=True, tag_field="type", tag="text"):
    """Text part of a chat message."""

    text: str


class ImagePart(msgspec.Struct, kw_only=True, tag_field="type", tag="image_url"):
    """Picture part of a chat message."""

    image_url: ImageUrl


class FilePart(msgspec.Struct, kw_only=True, tag_field="type", tag="file"):
    """File part of a chat message."""

    file: FileData


class InputText(msgspec.Struct, kw_only=True, tag_field="type", tag="input_text"):
    """Text part of an input message of the Responses API."""

    text: str


class OutputText(msgspec.Struct, kw_only=True, tag_field="type", tag="output_text"):
    """Text part of an earlier reply that a Responses API client sends back as input."""

    text: str


class InputImage(msgspec.Struct, kw_only=True, tag_field="type", tag="input_image"):
    """Picture part of an input message of the Responses API."""

    image_url: Address


class InputFile(msgspec.Struct, kw_only=True, tag_field="type", tag="input_file"):
    """File part of an input message of the Responses API."""

    file_data: Data
    filename: str = "file"


Content = str | list[TextPart | ImagePart | FilePart | InputText | OutputText | InputImage | InputFile]
Spoken = Annotated[Content, described(pattern=r"\S", contains={"properties": {"text": {"pattern": r"\S"}}})]
Role = Annotated[
    Literal["system", "developer", "user", "assistant", "tool", "function"],
    described(**{"not": {"enum": ["tool", "function"]}}),
]
SYSTEM = frozenset({"system", "developer"})


class Said(msgspec.Struct, kw_only=True):
    """One message that a client sends, with its role. The last one starts the run, the earlier ones are history."""

    role: Role
    content: Content | None = None


class InputItem(msgspec.Struct, kw_only=True):
    """One item of the input of a Responses API request. Only messages are accepted, not tool calls."""

    type: Annotated[str, described(const="message")] = "message"
    role: Role = "user"
    content: Content | None = None


Words = Annotated[str, msgspec.Meta(min_length=1)]


def origin_of(speaker: Principal) -> Origin:
    """The trust label of text from this principal."""
    return Origin(speaker.standing)


def parts_of(content: Content | None, speaker: Principal) -> tuple[Part, ...]:
    """Convert a message's content to our parts. Raises `Refused` for invalid content."""
    origin = origin_of(speaker)
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(text=content, origin=origin),)
    return tuple(_part(part, origin) for part in content)


def says(parts: tuple[Part, ...]) -> bool:
    """Whether a message has any text, picture or file."""
    return any(not isinstance(part, Text) or part.text.strip() for part in parts)


def _part(
    part: TextPart | ImagePart | FilePart | InputText | OutputText | InputImage | InputFile, origin: Origin
) -> Part:
    match part:
        case TextPart(text=text) | InputText(text=text) | OutputText(text=text):
            return Text(text=text, origin=origin)
        case ImagePart(image_url=place):
            return _image(place.url, origin)
        case InputImage(image_url=url):
            return _image(url, origin)
        case FilePart(file=file):
            return _file(file.file_data, file.filename, origin)
        case InputFile(file_data=data, filename=name):
            return _file(data, name, origin)


def _image(url: str, origin: Origin) -> Image:
    if url.startswith(("https://", "http://")):
        return Image(url=url, origin=origin)
    kind, data = _data(url, "image_url")
    return Image(media_type=kind, data=data, origin=origin)


def _file(url: str, name: str, origin: Origin) -> File:
    kind, data = _data(url, "file_data")
    return File(name=name, media_type=kind, data=data, origin=origin)


def _data(url: str, field: str) -> tuple[str, str]:
    found = DATA_URL.fullmatch(url)
    if found is None:
        raise bad(f"`{field}` holds no address that can be read: `data:TYPE;base64,...` is needed.", field)
    try:
        base64.b64decode(found["data"])
    except binascii.Error as error:
        raise bad(f"`{field}` holds no base64 ({error}).", field) from error
    return found["type"], found["data"]


def said_as(part: Part) -> InputText | InputImage | InputFile:
    """Convert one of our parts to responses API content."""
    match part:
        case Text(text=text):
            return InputText(text=text)
        case Image(url=url, media_type=kind, data=data):
            return InputImage(image_url=url or f"data:{kind};base64,{data}")
        case File(name=name, media_type=kind, data=data):
            return InputFile(file_data=f"data:{kind};base64,{data}", filename=name)


def text_of(content: Content | None) -> str:
    """The text of a message."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.text for part in content if isinstance(part, TextPart | InputText | OutputText))
