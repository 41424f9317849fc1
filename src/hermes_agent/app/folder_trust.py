"""Trusted folders: which ones the owner vouches for; an answer is bound to the files there that speak to the agent."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from difflib import unified_diff
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path

import msgspec

from hermes_agent.app.environment_prompt import CONTEXT_FILES, OTHER_CONTEXT_FILES, git_root
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Notice
from hermes_agent.core.quick_replies import FOLDER
from hermes_agent.core.shown import plural
from hermes_agent.host.paths import Home, read_small
from hermes_agent.sandbox.walls import Walls
from hermes_agent.scanner.scan import alarms
from hermes_agent.skills.depot import JsonFile, own_files, without
from hermes_agent.skills.skill import PROJECT_FOLDERS
from hermes_agent.tools.mcp.settings import secrets_in

FILE = "trusted-folders.json"
PROJECT_SERVERS = ".mcp.json"
SPEAKING = (*CONTEXT_FILES, *OTHER_CONTEXT_FILES, PROJECT_SERVERS)
MOST_NAMED = 20
RECEIVED = "received"
"""The folder of a workspace where the gateway puts what people send."""
LONGEST = 20_000
"""Characters of a file that are kept to show what changed; of a longer one its hash."""
LARGEST = 1 << 22
MOST_LOOKED_AT = 2_000
"""Files of a folder that are looked at for one answer; one with more, some of them doubtful, is doubtful."""
MOST_SPANS, MOST_SESSIONS = 500, 10_000
MOST_SAID = 20_000
"""Characters of a command in which names of files are looked for."""
NAMES = re.compile(r"""[^\s'"`;|&<>()\[\]{}=,:]+""")
WALLS, SYSTEM = Walls(), (("dev",), ("proc",), ("sys",))
SLACK = 2.0
"""Seconds by which the clocks of a file system and of this program may differ."""


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that the owner trusts: what its speaking files held then, and the spans of time (seconds since 1970) in
    which files changed there whose content may be from outside."""

    files: dict[str, str] = {}
    doubt: tuple[tuple[float, float], ...] = ()


class Folders(msgspec.Struct, frozen=True, kw_only=True):
    """All trusted folders, by their real paths; and those that the owner `declined` to trust, with the id of the
    question."""

    folders: dict[str, Folder] = {}
    declined: dict[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What is to be asked about a folder: what in it speaks to the agent and was not seen before, as text or as a
    difference, with the scanner's findings. `id` is the question's, and changes with what is asked about."""

    root: Path
    files: dict[str, str]
    findings: tuple[str, ...] = ()
    known: bool = False
    id: str = ""

    @property
    def notice(self) -> Notice:
        """The question about the folder, in one line."""
        names, more = list(self.files)[:3], len(self.files) - 3
        others = f" and {plural(more, 'other')}" if more > 0 else ""
        told = f"{', '.join(names)}{others} {'changed' if self.known else 'speaks to the agent'}." if names else NOTHING
        text = ASKED.format(root=self.root, what=" ".join((told, *self.findings)))
        return Notice(text=text, level="news", question=self.id)


ASKED = "Do you trust the files of {root}? {what} `/trust` shows it. Until then what is learned here waits for you."
NOTHING = "Nothing in it speaks to the agent."


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubted:
    """A file whose content may be from outside, because it changed while that was in view of who changed it."""

    name: str
    since: float


class TrustedFolders:
    """The owner's answers, kept in the home. `is_trusted` holds for a session as it was at its first question. Blocks,
    but for what changes the file."""

    def __init__(self, home: Home, clock: Clock) -> None:
        self._home, self._clock = home.root.resolve(), clock
        self._file = JsonFile(home.root / FILE, Folders, Folders())
        self._once: dict[str, Folder] = {}
        self._asked: set[str] = set()
        self._sessions: dict[str, bool] = {}

    def folders(self) -> dict[str, Folder]:
        """All trusted folders."""
        return {**self._file.get().folders, **self._once}

    def news(self, workspace: str) -> News | None:
        """What the owner has to be asked before this folder is trusted; None where it is, or cannot be."""
        root = self.root(workspace)
        if self._is_wide(root) or root == self._home / "workspace":
            return None
        known = self.folders().get(str(root))
        before = known.files if known else {}
        speaking = dict(_speaking(root, Path(workspace)))
        now = {name: text for name, text in speaking.items() if before.get(name) != _kept(text)}
        if known and not now:
            return None
        said = msgspec.json.encode((str(root), speaking, known.doubt if known else ()))
        shown = {name: _difference(before.get(name, ""), text) for name, text in now.items()}
        found = [(name, each) for name, text in now.items() for each in alarms(text)]
        findings = [f"{name}: {each.category.value}, {each.what}" for name, each in found]
        wanted = [
            f"{name}: servers get {', '.join(secrets)}."
            for name, text in now.items()
            if (secrets := _secrets(name, text))
        ]
        id_ = f"{FOLDER}{hashlib.sha256(said).hexdigest()[:16]}"
        return News(root=root, files=shown, findings=(*findings, *wanted), known=known is not None, id=id_)

    def question(self, workspace: str) -> News | None:
        """What to ask the owner now: once in a process, and not what they declined."""
        news = self.news(workspace)
        if news is None or news.id in self._asked or self._file.get().declined.get(str(news.root)) == news.id:
            return None
        self._asked.add(news.id)
        return news

    async def decline(self, workspace: str) -> None:
        """Ask no more about the folder as it is."""
        if (news := await asyncio.to_thread(self.news, workspace)) is not None:
            no = {str(news.root): news.id}
            await self._file.change(lambda old: msgspec.structs.replace(old, declined={**old.declined, **no}))

    def is_trusted(self, workspace: str, session: str = "") -> bool:
        """Whether the owner trusts the folder as it is; for a session, as it was when it was first asked."""
        if session not in self._sessions or not session:
            if len(self._sessions) > MOST_SESSIONS:
                self._sessions.clear()
            root = self.root(workspace)
            asked = str(root) in self.folders() or root == self._home / "workspace"
            self._sessions[session] = asked and not self._is_wide(root) and self.news(workspace) is None
        return self._sessions[session]

    async def trust(self, workspace: str, *, once: bool = False) -> tuple[Doubted, ...]:
        """Trust the folder with what it holds now, also what was in doubt, which is returned. `once`: until this
        process ends, and what is in doubt stays so."""
        self._sessions.clear()
        root = self.root(workspace)
        speaking = await asyncio.to_thread(lambda: dict(_speaking(root, Path(workspace))))
        files = {name: _kept(text) for name, text in speaking.items()}
        seen = self.folders().get(str(root), Folder())
        if once:
            self._once[str(root)] = Folder(files={**seen.files, **files}, doubt=seen.doubt)
            return ()
        doubted = await asyncio.to_thread(self.doubted, workspace)
        self._once.pop(str(root), None)

        def trusted(old: Folder) -> Folder:
            # What came to be in doubt since it was looked at stays so.
            return Folder(
                files={**old.files, **files}, doubt=tuple(each for each in old.doubt if each not in seen.doubt)
            )

        await self._put(str(root), trusted)
        return doubted

    def doubted(self, workspace: str) -> tuple[Doubted, ...]:
        """The files of the folder that are in doubt, the latest first."""
        root = self.root(workspace)
        spans = self.folders().get(str(root), Folder()).doubt
        found = [each for each in _below(root) if _changed_within(each, spans)] if spans else []
        named = [Doubted(name=each.relative_to(root).as_posix(), since=each.lstat().st_ctime) for each in found]
        return tuple(sorted(named, key=lambda each: -each.since))

    async def withdraw(self, folder: str) -> bool:
        """Trust the folder no more; False where it was not trusted."""
        root = str(self.root(folder))
        there = root in self.folders()
        self._once.pop(root, None)
        self._sessions.clear()
        await self._file.change(lambda old: msgspec.structs.replace(old, folders=without(old.folders, root)))
        return there

    async def doubt(self, root: Path, since: float, until: float) -> None:
        """Note that what changes in the folder in these seconds may hold what is from outside."""
        span = (since - SLACK, until + SLACK)
        if once := self._once.get(str(root)):
            self._once[str(root)] = _doubting(once, span)
        if str(root) in self._file.get().folders or root == self._home / "workspace":
            await self._put(str(root), lambda known: _doubting(known, span))

    def labels(self, workspace: str, session: str) -> FolderLabels:
        """What a run of that session may count as the workspace's."""
        root = self.root(workspace)
        trusted = self.is_trusted(workspace, session)
        return FolderLabels(folders=self, root=root, home=self._home, workspace=Path(workspace), trusted=trusted)

    def _is_wide(self, root: Path) -> bool:
        """Whether so much lies in the folder that nobody can vouch for it."""
        return root in (Path(root.anchor), Path.home(), self._home)

    @staticmethod
    def root(workspace: str) -> Path:
        """The folder that is asked about: the repository that a workspace is part of, or the workspace."""
        folder = Path(workspace or "/").resolve()
        return (git_root(folder) or folder).resolve()

    async def _put(self, root: str, change: Callable[[Folder], Folder]) -> None:
        def put(old: Folders) -> Folders:
            changed = {**old.folders, root: change(old.folders.get(root, Folder()))}
            return msgspec.structs.replace(old, folders=changed)

        await self._file.change(put)


def _doubting(folder: Folder, span: tuple[float, float]) -> Folder:
    spans = sorted([*folder.doubt, span])
    joined: list[tuple[float, float]] = []
    for start, end in spans:
        if joined and (start <= joined[-1][1] or len(spans) > MOST_SPANS):
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return msgspec.structs.replace(folder, doubt=tuple(joined))


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderLabels:
    """Says which files are the trusted workspace's; implements `agent.Labels`."""

    folders: TrustedFolders
    root: Path
    home: Path
    workspace: Path
    trusted: bool

    async def is_trusted(self, paths: Sequence[str], said: str = "") -> bool:
        """See `agent.Labels`. Waits for nothing but a look into a folder of which something is in doubt."""
        if not self.trusted:
            return False
        known = self.folders.folders().get(str(self.root), Folder())
        if said:
            return await asyncio.to_thread(self._names_ours, said[:MOST_SAID], known.doubt)
        found = [_real(path) for path in paths]
        if known.doubt and any(not path.is_file() for path in found):
            return await asyncio.to_thread(lambda: all(self._is_ours(path, known.doubt) for path in found))
        return all(self._is_ours(path, known.doubt) for path in found)

    async def doubt(self, since: float, until: float) -> None:
        """See `agent.Labels`."""
        await self.folders.doubt(self.root, since, until)

    def _names_ours(self, said: str, spans: Sequence[tuple[float, float]]) -> bool:
        """Whether a command names no file that is somebody else's: by a path, or by the name of a doubtful one."""
        names = list(dict.fromkeys(NAMES.findall(said)))
        for path in filter(None, (_existing(self.workspace, name) for name in names)):
            if path.parts[1:2] in SYSTEM or (self.root.is_relative_to(path) and path != self.root):
                continue
            inside = path.is_relative_to(self.root)
            if not self._is_ours(path, spans) if inside else WALLS.access(str(path), str(self.root)) == "none":
                return False
        ends = [name.rpartition("/")[2] for name in names]
        below = islice(_below(self.root), MOST_LOOKED_AT) if spans else ()
        return not any(any(fnmatch(each.name, end) for end in ends) and _changed_within(each, spans) for each in below)

    def _is_ours(self, path: Path, spans: Sequence[tuple[float, float]]) -> bool:
        inside = path.is_relative_to(self.root) and path.relative_to(self.root).parts[:1] != (RECEIVED,)
        hidden = path.is_relative_to(self.home) and not self.root.is_relative_to(self.home)
        if not inside or hidden:
            return False
        while not path.exists() and path != self.root:  # What is said of a missing file names those beside it.
            path = path.parent
        if path == self.root and any(_below(path / RECEIVED)):
            return False
        if not spans:
            return True
        above = [folder / name for folder in path.parents if folder.is_relative_to(self.root) for name in SPEAKING]
        looked = [path, *above] if not path.is_dir() else list(islice(_below(path), MOST_LOOKED_AT))
        return len(looked) < MOST_LOOKED_AT and not any(_changed_within(each, spans) for each in looked)


def _real(path: str) -> Path:
    return Path(os.path.realpath(path))


def _existing(folder: Path, name: str) -> Path | None:
    try:
        return (folder / Path(name).expanduser()).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None


def _below(folder: Path) -> Iterator[Path]:
    for found, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if each != ".git"]
        yield from (Path(found) / name for name in files)


def _changed_within(path: Path, spans: Sequence[tuple[float, float]]) -> bool:
    try:
        at = path.lstat().st_ctime
    except OSError:
        return False
    return any(start <= at <= end for start, end in spans)


def _speaking(root: Path, workspace: Path) -> Iterator[tuple[str, str]]:
    """The files in a folder that speak to the agent, by their path there, with what they hold."""
    above = [each for each in (workspace.resolve(), *workspace.resolve().parents) if each.is_relative_to(root)]
    files = [folder / name for folder in above for name in SPEAKING]
    files += [path for folder in above for name in PROJECT_FOLDERS for path in own_files(folder / name)]
    for path in dict.fromkeys(files):
        if path.is_file() and (content := read_small(path, LARGEST)) is not None:
            yield path.relative_to(root).as_posix(), content.decode("utf-8", "replace")


def _secrets(name: str, text: str) -> list[str]:
    """The secrets that the MCP servers of a project's file would get."""
    found = secrets_in(text) if name.rpartition("/")[2] == PROJECT_SERVERS else []
    more = [f"and {len(found) - MOST_NAMED} more, which is unusual"] * (len(found) > MOST_NAMED)
    return [each[:80] for each in found[:MOST_NAMED]] + more


def _kept(text: str) -> str:
    return text if len(text) <= LONGEST else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _difference(before: str, after: str) -> str:
    if not before or before.startswith("sha256:"):
        return after
    return "\n".join(list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))[2:])
