"""Options of a process (how it uses the system), and the objects that outlive changes of its settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from hermes_agent.app.chats.people import People
from hermes_agent.app.chats.platforms import PlatformOf, own_platform
from hermes_agent.app.folder_trust import TrustedFolders
from hermes_agent.app.skills import Reserved
from hermes_agent.app.tool_sources import EditorServers, FixedTools, ToolSource
from hermes_agent.core.chat import Principal, Standings
from hermes_agent.core.clock import Clock, Ids
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.spending import Rules
from hermes_agent.core.tool import Tool
from hermes_agent.host.http import Http
from hermes_agent.host.late import Needs, late
from hermes_agent.host.paths import Home
from hermes_agent.host.secrets import Secrets
from hermes_agent.replay.seam import Book, Seam
from hermes_agent.runs.front import Hermes
from hermes_agent.runs.one_run import Afterwards, ClosingsOf, Service, no_closings
from hermes_agent.store.database import Store
from hermes_agent.tools.files.buffers import Buffers
from hermes_agent.tools.permission.unasked import Unasked
from hermes_agent.tools.surfaces import StandingOf, standing_here

if TYPE_CHECKING:
    from hermes_agent.replay.recorder import Recorder
    from hermes_agent.replay.replayer import Player
    from hermes_agent.work.board.worker import Holding

Tape: TypeAlias = "Recorder | Player"
MakeSource = Callable[[Needs], ToolSource]
"""Makes a source of what there is; the front door is there."""
APPROVALS = "approvals.yaml"
POSTING = "hermes_agent.runs.one_run:Posting"


def delivers_nothing(_: str) -> bool:
    """The default of `Options.delivers` and `here`: no session's replies go through the outbox."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How one process uses the system.

    - `model` replaces the configured one;
    - `queue` and `own_only`: whose messages it works on; `most`: parallel runs (see `Hermes`);
    - `delivers` and `here`: which sessions' replies go through the outbox (see `Posting`; by default, for a process
      that serves everybody, those of the channels in the settings); `people`: the people of the channels;
    - `attended`: whether a person is there to answer questions;
    - `toolsets` and `capabilities` narrow what the agent has (None: all); `extra_tools` and `tool_sources` add to
      it;
    - `tape` records the process, or is what it replays;
    - `standing` gives a principal's role by key; by default whoever speaks on this machine is the owner, everybody
      else a guest;
    - `titles`: whether sessions get titles from a model (`auxiliary.title`); `reviews`: whether this process runs
      reviews, otherwise they wait for one that does;
    - `restart` restarts this process (None: it cannot); `pseudonyms` hides user ids in the log;
    - `platform` gives the prompt facts of a channel; `reading` says how replies of this process are read;
    - `strict_input` refuses large input instead of saving it as a file; `allow`: globs of calls that need no
      approval; `holding`: the card that this process works on.
    """

    model: str = ""
    queue: str = "cli"
    own_only: bool = True
    most: int | None = None
    people: People | None = None
    delivers: Callable[[str], bool] | None = None
    here: Callable[[str], bool] = delivers_nothing
    attended: bool = True
    toolsets: tuple[str, ...] | None = None
    capabilities: tuple[str, ...] | None = None
    extra_tools: Sequence[Tool] = ()
    tool_sources: Sequence[MakeSource] = ()
    tape: Tape | None = None
    standing: StandingOf = standing_here
    titles: bool = False
    reviews: bool = False
    restart: Callable[[], None] | None = None
    pseudonyms: Callable[[str], str] = str
    platform: PlatformOf = own_platform
    reading: str = ""
    strict_input: bool = False
    allow: tuple[str, ...] = ()
    holding: Holding | None = None

    def service(
        self,
        store: Store,
        people: People,
        afterwards: Afterwards,
        redact: Callable[[str], str],
        closings: ClosingsOf = no_closings,
    ) -> Service:
        """The scheduler's `Service` for these options."""
        delivers = self.delivers or (delivers_nothing if self.own_only else people.channels.__contains__)
        silent = delivers is delivers_nothing
        posting = None if silent else late(POSTING)(outbox=store.outbox, delivers=delivers, here=self.here)
        return Service(most=self.most, posting=posting, afterwards=(afterwards,), redact=redact, closings=closings)


@dataclass(kw_only=True)
class Process:
    """The objects that live as long as the process, whatever its settings become.

    `seam` is the interface to the world (seam) that recordings and replays stand behind, with the clock and ids that
    runs see; `machine` is the real clock. `limits`: those of a replay. `standings` gives roles, `unasked` the runs
    without approval questions, `buffers` and `editor_servers` what an editor gives to sessions, `reserved` the names
    that skills may not have, `folders` the folders that the owner trusts; `owner` is this machine's person.
    `hermes`, the front door to runs, exists before anything is built from settings.
    """

    home: Home
    options: Options
    secrets: Secrets
    store: Store
    seam: Seam
    machine: Clock
    http: Http
    people: People
    book: Book
    standings: Standings
    owner: Principal
    reserved: Reserved
    limits: Rules | None = None
    unasked: Unasked = field(default_factory=Unasked)
    buffers: Buffers = field(default_factory=Buffers)
    editor_servers: EditorServers = field(default_factory=EditorServers)
    hermes: Hermes = field(init=False)
    folders: TrustedFolders = field(init=False)

    def __post_init__(self) -> None:
        self.folders = TrustedFolders(self.home, self.machine)

    @property
    def model(self) -> str:
        """The model chosen for this process (empty: the configured one)."""
        return self.options.model

    @property
    def has_cassette(self) -> bool:
        """Whether the process is recorded or replayed."""
        return self.options.tape is not None

    @property
    def restart(self) -> Callable[[], None] | None:
        """Restarts this process (None: it cannot)."""
        return self.options.restart

    @property
    def clock(self) -> Clock:
        """The clock that runs see."""
        return self.seam.clock

    @property
    def ids(self) -> Ids:
        """The id generator that runs see."""
        return self.seam.ids


def own_tools(needs: Needs) -> ToolSource:
    """Tool source for the tools that a program registers."""
    return FixedTools(needs.get(Options).extra_tools)
