"""What a skill is: its frontmatter, its body, and the card of it that the index keeps."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Literal

import msgspec

FILE = "SKILL.md"
FOLDERS = ("references", "templates", "scripts", "assets")
"""Where support files may stand."""


class Layer(StrEnum):
    """Where a skill was found; the earlier wins over another of the same name.

    `user`: the home's own, made by the person or by the agent; `hub`: what was installed from a repository, never
    written; `project`: the folder that the session works in; `external`: `skills.external_dirs`, never written;
    `bundled`: what comes with the program, never written.
    """

    USER = "user"
    HUB = "hub"
    PROJECT = "project"
    EXTERNAL = "external"
    BUNDLED = "bundled"


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A named slot of the body: `{{name}}`. Without a default it has to be given."""

    name: str
    type: Literal["text", "number", "whole", "switch"] = "text"
    default: str | None = None
    description: str = ""


class Ours(msgspec.Struct, frozen=True, kw_only=True):
    """What stands under `metadata.hermes`; what else stands there is kept in the file and not read."""

    category: str = ""
    tags: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    chat_kinds: tuple[str, ...] = ()
    requires_tools: tuple[str, ...] = ()
    requires_toolsets: tuple[str, ...] = ()
    fallback_for_tools: tuple[str, ...] = ()
    fallback_for_toolsets: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    required_environment_variables: tuple[str, ...] = ()


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill as its file tells it. `text` is the whole file, `body` what stands below the frontmatter."""

    name: str
    description: str
    body: str
    text: str
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    ours: Ours = Ours()


class SkillHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What the index gives back of a skill: enough to offer it, not its body."""

    name: str
    description: str
    folder: str
    layer: Layer
    family: str
    ours: Ours

    @property
    def path(self) -> Path:
        """Its folder."""
        return Path(self.folder)

    @property
    def line(self) -> str:
        """Name and description on one line, cut to what a list has room for."""
        words = " ".join(self.description.split())
        shown = words if len(words) <= LONGEST_LINE else f"{words[: LONGEST_LINE - 1]}…"
        return f"{self.name}: {shown}"


LONGEST_LINE = 160
