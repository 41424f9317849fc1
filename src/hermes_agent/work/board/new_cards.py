"""What a card may say when it is created or changed: known names, folders that may be workspaces, sizes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Origin
from hermes_agent.host.nearest import nearest_key
from hermes_agent.host.paths import PROFILE, Home
from hermes_agent.store.work.board import Boards
from hermes_agent.store.work.cards import COMMAND, HUMAN, PROFILE as REVIEWER, Card, Reason, Status, Workspace
from hermes_agent.work.board.rules import By, Role
from hermes_agent.work.board.settings import BoardSettings

MAIN = "main"
BASE = "default"
"""The name under which the home without a profile is assigned."""
LONGEST_TITLE = 200
SHOWN_BODY = 4_000
PRIORITIES = 4
NUMBERS: Mapping[str, tuple[str, int]] = {
    "priority": ("A priority is 0 (most urgent)", PRIORITIES),
    "max_minutes": ("Minutes are 0 (any)", 7 * 24 * 60),
    "max_attempts": ("Attempts are 0 (as set)", 20),
    "goal_turns": ("The turns of a goal are 0", 100),
}
"""What a number of a card may be, in words, and the most."""
WORDS = ("title", "branch", *NUMBERS)
"""What `check_words` checks."""
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
BRANCH = re.compile(r"\w[\w./-]{0,200}")
LONGEST_BODY = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCard:
    """What is said of a card when it is created. `workspace` reads `scratch`, `worktree:REPOSITORY` or `dir:FOLDER`;
    `check` names a check of the settings, `human`, `profile:NAME`, or `command:...`."""

    title: str
    body: str = ""
    board: str = MAIN
    assignee: str = ""
    parents: tuple[str, ...] = ()
    workspace: str = "scratch"
    branch: str = ""
    tenant: str = ""
    priority: int = 2
    triage: bool = False
    hold: bool = False
    key: str = ""
    max_minutes: float = 0.0
    max_attempts: int = 0
    goal_turns: int = 0
    skills: tuple[str, ...] = ()
    model: str = ""
    toolsets: tuple[str, ...] = ()
    check: str = ""


def profiles(home: Home) -> list[str]:
    """The names that a card may be assigned to. Blocks."""
    folder = home.base / "profiles"
    found = [each.name for each in folder.iterdir() if PROFILE.fullmatch(each.name)] if folder.is_dir() else []
    return [BASE, *sorted(found)]


class NewCards:
    """Checks what is said of cards, for one home. `objection` says why a folder may not be a workspace (empty: it may);
    it blocks."""

    def __init__(self, cards: Boards, home: Home, settings: BoardSettings, objection: Callable[[Path], str]) -> None:
        self._cards, self._home, self._settings, self._objection = cards, home, settings, objection

    async def checked(self, by: By, new: NewCard) -> tuple[Card, str]:
        """The card to be, with its whole body. Raises `HermesError`."""
        check_words(**{name: getattr(new, name) for name in WORDS})
        kind, _, where = new.workspace.partition(":")
        if kind not in set(Workspace):
            raise HermesError(meant("workspace", kind, list(Workspace)))
        path = await asyncio.to_thread(self._folder, by, kind, where)
        shown = new.body if len(new.body) <= LONGEST_BODY else f"{new.body[:SHOWN_BODY]}\n\n(The rest: body.md)"
        card = Card(
            id="",
            board=await self.board(new.board),
            title=" ".join(new.title.split()),
            body=shown,
            status=Status.TRIAGE if new.triage else Status.BLOCKED if new.hold else Status.TODO,
            blocked=Reason.NEEDS_INPUT if new.hold and not new.triage else None,
            assignee=await self.profile(new.assignee or self._settings.assignee),
            priority=new.priority,
            tenant=new.tenant,
            created_by=by.card if by.role is Role.WORKER else by.name,
            whose=by.whose or by.name,
            origin=origin_of(by),
            key=new.key,
            workspace=Workspace(kind),
            folder=path if kind == Workspace.DIR else "",
            source=path if kind == Workspace.WORKTREE else "",
            branch=new.branch,
            skills=new.skills,
            model=new.model,
            toolsets=new.toolsets,
            max_seconds=60 * new.max_minutes,
            max_attempts=new.max_attempts or self._settings.max_attempts,
            goal_turns=new.goal_turns,
            validator=await asyncio.to_thread(self.validator, by, new.check),
        )
        return card, new.body

    def _folder(self, by: By, kind: str, where: str) -> str:
        if kind == Workspace.SCRATCH:
            return ""
        if not where or "\0" in where or not (real := (Path(by.folder) / Path(where).expanduser()).resolve()).is_dir():
            raise HermesError(f"{where or 'The workspace'} is not a folder: say `{kind}:/path/to/it`.")
        own = by.folder and real.is_relative_to(Path(by.folder).resolve())
        if by.role is not Role.OWNER and not own:
            raise HermesError(f"{where} is outside of the folder that you work in: only the owner gives others.")
        if why := self._objection(real):
            raise HermesError(f"{where} cannot be a workspace: {why}.")
        return str(real)

    def validator(self, by: By, check: str) -> str:
        """The validator of a check by its name. Raises `HermesError` for one that does not exist. Blocks."""
        if not check or check == HUMAN:
            return check
        if check in self._settings.checks:
            return f"{COMMAND}{self._settings.checks[check].command}"
        if check.startswith(COMMAND) and by.role is Role.OWNER and not by.tainted:
            return check
        if check.startswith(REVIEWER) and check.removeprefix(REVIEWER) in profiles(self._home):
            return check
        reviewers = [f"{REVIEWER}{name}" for name in profiles(self._home)]
        raise HermesError(meant("check", check, [HUMAN, *reviewers, *self._settings.checks]))

    async def profile(self, name: str) -> str:
        """The profile of that name (empty: the base home). Raises `HermesError` for one that does not exist."""
        known = await asyncio.to_thread(profiles, self._home)
        if name and name not in known:
            raise HermesError(meant("profile", name, known))
        if name == BASE and known.count(BASE) > 1:
            raise HermesError(f"A profile is called `{BASE}`, which is the home without a profile: rename it.")
        return "" if name == BASE else name

    async def create_board(self, name: str) -> None:
        """Create a board. Raises `HermesError` for a bad name."""
        if not NAME.fullmatch(name):
            raise HermesError(f"`{name}` is no name of a board: at most 64 of a-z, 0-9, `-` and `_`.")
        await self._cards.create_board(name)

    async def board(self, name: str) -> str:
        """The name of a board that exists. Raises `HermesError`."""
        known = {MAIN, *await self._cards.boards()}
        if name not in known:
            raise HermesError(f"{meant('board', name, sorted(known))} `hermes kanban boards NAME` creates one.")
        return name


def check_words(**said: object) -> None:
    """Raise `HermesError` for one of `WORDS` that does not do."""
    title, branch = str(said.get("title", "x")), str(said.get("branch", ""))
    if not title.strip() or len(title) > LONGEST_TITLE:
        raise HermesError(f"A title has 1 to {LONGEST_TITLE} characters; the rest belongs into the body.")
    if branch and not BRANCH.fullmatch(branch):
        raise HermesError(f"`{branch}` is no name of a branch.")
    for name, (words, most) in NUMBERS.items():
        if not 0 <= float(str(said.get(name, 0))) <= most:
            raise HermesError(f"{words} to {most:,}.")


def assignee_of(name: str) -> str | None:
    """The assignee that a filter means; None for all."""
    return None if not name else "" if name == BASE else name


def meant(what: str, name: str, known: Collection[str]) -> str:
    """A sentence about an unknown name, with the nearest known one."""
    near = nearest_key(name, known)
    return f"There is no {what} `{name}`. " + (f"Did you mean `{near}`?" if near else f"There are: {', '.join(known)}.")


def origin_of(by: By) -> Origin:
    """The label of what an actor writes."""
    if by.tainted:
        return Origin.MEMBER if by.role is Role.OWNER else ORIGINS.get(by.role, Origin.TOOL)
    return ORIGINS.get(by.role, Origin.MODEL)


ORIGINS: Mapping[Role, Origin] = {
    Role.OWNER: Origin.OWNER,
    Role.MEMBER: Origin.MEMBER,
    Role.BOARD: Origin.RUNTIME,
}
"""The label of what an actor writes that is no agent."""
