"""Who changes a skill, and what a change leaves."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.versions import NO_BACKING, Author, Backing


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """Who changes a skill, and what made them: the events `first` to `last` of a session, the key of the call; the
    version that it takes back."""

    author: Author
    principal: str = ""
    session: str = ""
    first: int = 0
    last: int = 0
    key: str = ""
    undoes: int | None = None
    backing: Backing = NO_BACKING


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a change left: the version (0: nothing had to change), the file, and how a patched text was found."""

    name: str
    file: str
    version: int
    folder: str = ""
    note: str = ""
