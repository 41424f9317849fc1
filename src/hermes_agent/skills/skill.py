"""A skill: frontmatter, body, and its header in the index; the folders in which skills are, and the settings."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Literal, assert_never

import msgspec

from hermes_agent.core.chat import PRIVATE, Conversation
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Origin
from hermes_agent.host.schema import setting
from hermes_agent.skills.depot import HUB, STORE, used_folders

FILE = "SKILL.md"
FOLDERS = ("references", "templates", "scripts", "assets")
"""Where support files may stand."""


class Layer(StrEnum):
    """Origin of a skill; the earlier layer wins over another of the same name.

    `user`: the home's own, made by the person or the agent; `hub`: installed from a repository, never written;
    `project`: the session's working folder; `external`: `skills.external_dirs`, never written; `bundled`: shipped
    with the program, never written.
    """

    USER = "user"
    HUB = "hub"
    PROJECT = "project"
    EXTERNAL = "external"
    BUNDLED = "bundled"

    @property
    def origin(self) -> Origin:
        """The label of such a skill's text. What the home holds came there by the ledger; a project's skills are files
        of whoever wrote the project; what the owner installed or named was still written by others."""
        match self:
            case Layer.USER | Layer.BUNDLED:
                return Origin.SKILL
            case Layer.PROJECT:
                return Origin.FILE
            case Layer.HUB | Layer.EXTERNAL:
                return Origin.WEB
            case _:
                assert_never(self)


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A named slot of the body: `{{name}}`. Without a default a value is required."""

    name: str
    type: Literal["text", "number", "whole", "switch"] = "text"
    default: str | None = None
    description: str = ""


class Blueprint(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduled job that a skill proposes. Its slots may stand in `schedule` and `prompt`; without a prompt the
    skill itself is followed."""

    schedule: str
    prompt: str = ""
    deliver: str = ""
    script: str = ""
    no_agent: bool = False


class Ours(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the frontmatter under `metadata.hermes`; unknown keys stay in the file and are ignored."""

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
    blueprint: Blueprint | None = None


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed skill. `text` is the whole file, `body` what follows the frontmatter."""

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
    """Index entry of a skill: enough to offer it, without its body."""

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
        """Name and description on one line, shortened for lists."""
        words = " ".join(self.description.split())
        shown = words if len(words) <= LONGEST_LINE else f"{words[: LONGEST_LINE - 1]}…"
        return f"{self.name}: {shown}"


LONGEST_LINE = 160


SYSTEMS = {"darwin": "macos", "linux": "linux", "windows": "windows"}
CLI = "cli"


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """Context in which skills are offered: `channel` is the platform of the conversation (`cli`, `telegram`, ...),
    `chat_kind` the kind of chat there (`dm`, `group`, ...); `tools` and `toolsets` are those of the agent."""

    system: str = SYSTEMS.get(platform.system().lower(), "other")
    channel: str = CLI
    chat_kind: str = ""
    tools: frozenset[str] = frozenset()
    toolsets: frozenset[str] = frozenset()

    @classmethod
    def at(cls, conversation: str, tools: Iterable[str] = (), toolsets: Iterable[str] = ()) -> Occasion:
        """The occasion of a conversation, by its key."""
        where = Conversation.parse(conversation)
        return cls(
            channel=where.platform, chat_kind=where.chat_kind, tools=frozenset(tools), toolsets=frozenset(toolsets)
        )

    def elsewhere(self, ours: Ours) -> str:
        """Where a skill may be used instead, in words; empty where it may be used here."""
        # `groups` and `private` are what people write.
        kinds = {self.chat_kind, f"{self.chat_kind}s", "private" if self.chat_kind in PRIVATE else ""}
        rules = (
            (ours.platforms, {self.system}, "the system"),
            (ours.channels, {self.channel}, "the channel"),
            (ours.chat_kinds, kinds, "the kind of chat"),
        )
        if all(not wanted or here & {each.lower() for each in wanted} for wanted, here, _ in rules):
            return ""
        where = "the terminal" if self.channel == CLI else f"{self.channel} ({self.chat_kind})"
        here = f"{where} on {self.system}" if ours.platforms else where
        return (
            f"only for {' and '.join(f'{what} {_or(wanted)}' for wanted, _, what in rules if wanted)}; this is {here}"
        )

    def why_not(self, ours: Ours) -> str:
        """Why a skill is not offered here, in words; empty where it is."""
        if where := self.elsewhere(ours):
            return f"it is {where}"
        for wanted, there, what in (
            (ours.requires_tools, self.tools, "tool"),
            (ours.requires_toolsets, self.toolsets, "toolset"),
        ):
            if missing := [each for each in wanted if each not in there]:
                return f"it needs the {what} {_or(missing)}, which is not here"
        for instead, there in ((ours.fallback_for_tools, self.tools), (ours.fallback_for_toolsets, self.toolsets)):
            if instead and all(each in there for each in instead):
                return f"it stands in for {_or(instead)}, which is here"
        return ""


def _or(names: Iterable[str]) -> str:
    return " or ".join(f"`{name}`" for name in names)


BUNDLED = Path(__file__).parent / "builtin"
PROJECT_FOLDERS = (".hermes/skills", ".agents/skills")
# Never looked into: what holds no skills, or skills that are no longer in use.
PASSED_OVER = frozenset({"node_modules", "venv", "__pycache__", "site-packages", *FOLDERS})
MOST = 20_000
"""Skills that one root may hold; what is beyond is not found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """Folder that is searched for skills, with its layer. Skills are edited only in the `user` layer."""

    path: Path
    layer: Layer

    @property
    def key(self) -> str:
        """Its name in the index."""
        return str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A folder with a SKILL.md, the category folder above it where there is one, and the state of the file."""

    folder: Path
    category: str
    stamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Skill folders of a home; a session adds its project's."""

    home: Path
    external: Sequence[str] = ()
    bundled: Path = BUNDLED
    project: bool = True

    def roots(self, workspace: str = "") -> tuple[Root, ...]:
        """The skill folders by precedence. Reads the disk."""
        found = [Root(path=self.home, layer=Layer.USER)]
        if (self.home / HUB / STORE).is_dir():
            found.append(Root(path=self.home / HUB / STORE, layer=Layer.HUB))
        if workspace and self.project:
            found += _of_project(Path(workspace))
        found += [Root(path=Path(each).expanduser().absolute(), layer=Layer.EXTERNAL) for each in self.external]
        found.append(Root(path=self.bundled, layer=Layer.BUNDLED))
        return tuple({root.key: root for root in reversed(found)}.values())[::-1]


def _of_project(workspace: Path) -> list[Root]:
    """The skills of the folder that a session works in, and of the git repository that it is part of."""
    above = next((each for each in (workspace, *workspace.parents) if (each / ".git").exists()), workspace)
    folders = [folder / name for folder in dict.fromkeys((workspace, above)) for name in PROJECT_FOLDERS]
    return [Root(path=folder, layer=Layer.PROJECT) for folder in folders if folder.is_dir()]


def found_in(root: Root) -> Iterator[Found]:
    """The skills of a root, one or two folders deep, in no order; none for a missing root."""
    if root.layer is Layer.HUB:
        yield from _installed(root.path.parent.parent)
        return
    left = MOST
    for entry in _folders(root.path, root):
        if stamp := _stamp(entry.path):
            yield Found(folder=Path(entry.path), category="", stamp=stamp)
            left -= 1
            continue
        for inner in _folders(entry.path, root):
            if stamp := _stamp(inner.path):
                yield Found(folder=Path(inner.path), category=entry.name, stamp=stamp)
                left -= 1
        if left <= 0:
            return


def _installed(home: Path) -> Iterator[Found]:
    """What the lock names; other folders there are not in use."""
    for folder in used_folders(home):
        if stamp := _stamp(str(folder)):
            yield Found(folder=folder, category="", stamp=stamp)


def _folders(path: str | Path, root: Root) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            # A project is somebody else's: a link there may lead anywhere.
            follow = root.layer is not Layer.PROJECT
            yield from (
                entry
                for entry in entries
                if not entry.name.startswith(".")
                and entry.name not in PASSED_OVER
                and entry.is_dir(follow_symlinks=follow)
            )
    except OSError:
        return


def _stamp(folder: str) -> str:
    try:
        found = os.lstat(f"{folder}/{FILE}")
    except OSError:
        return ""
    return f"{found.st_mtime_ns}.{found.st_size}.{found.st_ino}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSettings:
    """Settings of skills (section `skills`)."""

    external_dirs: tuple[str, ...] = setting((), "More folders of skills; Hermes only reads them.")
    disabled: tuple[str, ...] = setting((), "Names of skills to hide.")
    project: bool = setting(True, "Whether to use .hermes/skills and .agents/skills of the project.")
    guard_agent_created: bool = setting(
        False, "Whether to scan what the agent writes into skills, and refuse it on an alarm."
    )
    inline_shell_timeout: int = setting(
        10, "Seconds that each command inside a trusted skill may take.", least=1, most=120
    )
    creation_nudge_interval: int = setting(
        10, "Rounds of tools in a session after which it is reviewed for skills; 0: never.", least=0
    )
