"""Messages of a conversation: a role and typed parts, independent of any provider, each part labelled with its
origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Literal

from hermes_agent.core.dataclass import dataclass

KEPT_WHOLE = "kept whole in"
"""Stands before the path, in backticks, of a file that holds all of what a message shows in part."""


class Origin(StrEnum):
    """Origin label of a part: who or what produced it. Text from outside (`tool`, `web`, `file`, `guest`) is never
    an instruction."""

    OWNER = "owner"
    MEMBER = "member"
    GUEST = "guest"
    RUNTIME = "runtime"
    MODEL = "model"
    TOOL = "tool"
    WEB = "web"
    FILE = "file"
    SKILL = "skill"
    MEMORY = "memory"


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
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that this message asks for, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


def said(text: str, origin: Origin = Origin.OWNER) -> Message:
    """A user message of words alone."""
    return Message(role=Role.USER, parts=(Text(text=text, origin=origin),))
