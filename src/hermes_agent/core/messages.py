"""Messages of a conversation: a role and typed parts, independent of any provider, each part labelled with its
origin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import IntEnum, StrEnum
from typing import Any, Literal, assert_never

from hermes_agent.core.dataclass import dataclass

KEPT_WHOLE = "kept whole in"
"""Stands before the path, in backticks, of a file that holds all of what a message shows in part."""


NOTE = "<runtime mark="
"""So a note of the runtime begins that stands beside a message."""


class Trust(IntEnum):
    """What may be learned while a text is in view. `clean`: anything. `workspace` (a folder that the owner trusts):
    anything but copies of it. `outside`: nothing without the owner."""

    CLEAN = 0
    WORKSPACE = 1
    OUTSIDE = 2


class Origin(StrEnum):
    """Origin label of a part: where its bytes came from. `workspace` is a file of a trusted folder, or what a command
    said there that talked to nobody; `file` is any other file, `tool` anything not known better. Text of these, of the
    web and of other people is never an instruction. `skill` and `memory` are the home's own, by their ledgers."""

    OWNER = "owner"
    MEMBER = "member"
    GUEST = "guest"
    RUNTIME = "runtime"
    MODEL = "model"
    TOOL = "tool"
    WEB = "web"
    FILE = "file"
    WORKSPACE = "workspace"
    SKILL = "skill"
    MEMORY = "memory"

    @property
    def trust(self) -> Trust:
        """The class of such a text. What the model says is as the worst that was in its view: see `trust_in`."""
        match self:
            case Origin.OWNER | Origin.RUNTIME | Origin.MODEL | Origin.SKILL | Origin.MEMORY:
                return Trust.CLEAN
            case Origin.WORKSPACE:
                return Trust.WORKSPACE
            case Origin.MEMBER | Origin.GUEST | Origin.TOOL | Origin.WEB | Origin.FILE:
                return Trust.OUTSIDE
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text part of a message."""

    text: str
    origin: Origin = Origin.MODEL
    kind: Literal["text"] = field(default="text", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """A model's reasoning. `text` is what may be shown, empty where there is only a signature of the part that follows.
    `opaque` is the provider's signature or encrypted content, kept verbatim and sent back only to the `maker`
    ("vendor/model") that made it."""

    text: str
    opaque: str = ""
    maker: str = ""
    redacted: bool = False
    kind: Literal["thinking"] = field(default="thinking", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image part: its bytes as base64 in `data`, or an address in `url`."""

    media_type: str = "image/png"
    data: str = ""
    url: str = ""
    origin: Origin = Origin.OWNER
    kind: Literal["image"] = field(default="image", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A document part: its bytes as base64, its media type, and its file name. `reference` says where bytes are that
    were not fetched yet; no conversation holds such a part."""

    name: str
    media_type: str
    data: str = ""
    reference: str = ""
    origin: Origin = Origin.OWNER
    kind: Literal["file"] = field(default="file", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call that the model requests. `id` is unique within the session. `arguments` is the decoded JSON object;
    where the model's JSON was no object, `arguments` is empty and `broken` holds the original text."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    broken: str = ""
    kind: Literal["tool_call"] = field(default="tool_call", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of the call `call_id`. A failure is a result too, with `is_error` set."""

    call_id: str
    name: str
    parts: tuple[Text | Image | File, ...]
    is_error: bool = False
    kind: Literal["tool_result"] = field(default="tool_result", init=False)

    @property
    def text(self) -> str:
        """The words of the answer."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


Part = Text | Thinking | Image | File | ToolCall | ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """Words that an error quotes, with their label: they never stand in its sentence."""

    text: str
    origin: Origin


class Role(StrEnum):
    """Author of a message. System notices travel as `user` with origin `runtime`."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the conversation."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The words, without thinking and tool traffic."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def is_by_runtime(self) -> bool:
        """Whether the runtime wrote its beginning, whatever it quotes, and no person wrote a part of it."""
        own = [part.origin for part in self.parts if isinstance(part, Text)]
        return own[:1] == [Origin.RUNTIME] and not {Origin.OWNER, Origin.MEMBER, Origin.GUEST}.intersection(own)

    @property
    def is_runtime(self) -> bool:
        """Whether it is a note of the runtime, which may quote others."""
        parts = [part for part in self.parts if isinstance(part, Text)]
        own = [part.origin is Origin.RUNTIME for part in parts]
        return len(own) == len(self.parts) and (all(own) or (own[0] and parts[0].text.startswith(NOTE)))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that this message asks for, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


def trust_of(part: Part, own: Origin = Origin.OWNER) -> Trust:
    """The class of a part. `own` is the label of the person whose conversation it is. Whoever sends a picture or a
    document has seldom written it: only those of the workspace are better than outside."""
    match part:
        case ToolResult(parts=parts):
            return max((trust_of(each, own) for each in parts), default=Trust.CLEAN)
        case Text(origin=origin):
            return Trust.CLEAN if origin is own else origin.trust
        case Image(origin=origin) | File(origin=origin):
            return Trust.WORKSPACE if origin is Origin.WORKSPACE else Trust.OUTSIDE
        case Thinking() | ToolCall():
            return Trust.CLEAN
        case _:
            assert_never(part)


def trust_in(messages: Iterable[Message], own: Origin = Origin.OWNER) -> Trust:
    """The worst class in a view, and so the class of what a model says that sees it."""
    return max((trust_of(part, own) for message in messages for part in message.parts), default=Trust.CLEAN)


LABELS = {Trust.CLEAN: Origin.MODEL, Trust.WORKSPACE: Origin.WORKSPACE, Trust.OUTSIDE: Origin.TOOL}
"""The label of what is made of a view of that class."""


def said(text: str, origin: Origin = Origin.OWNER) -> Message:
    """A user message of words alone."""
    return Message(role=Role.USER, parts=(Text(text=text, origin=origin),))
