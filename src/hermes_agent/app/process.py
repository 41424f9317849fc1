"""One process of the system: how it is used, and what lasts as long as it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from hermes_agent.app.chats.people import People
from hermes_agent.app.chats.platforms import PlatformOf, own_platform
from hermes_agent.app.skills import Reserved
from hermes_agent.app.tool_sources import FixedTools, ToolSource
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.ids import Ids
from hermes_agent.core.inbound import Principal, Standings
from hermes_agent.core.spending import Rules
from hermes_agent.core.tool import Tool
from hermes_agent.host.http import Http
from hermes_agent.host.late import Needs, late
from hermes_agent.host.paths import Home
from hermes_agent.host.secrets import Secrets
from hermes_agent.replay.ledger import Book
from hermes_agent.replay.seam import Seam
from hermes_agent.runs.front import Hermes
from hermes_agent.runs.one_run import Afterwards, Service
from hermes_agent.store.database import Store
from hermes_agent.tools.permission.unasked import Unasked
from hermes_agent.tools.surfaces import StandingOf, standing_here

if TYPE_CHECKING:
    from hermes_agent.replay.recorder import Recorder
    from hermes_agent.replay.replayer import Player

Tape: TypeAlias = "Recorder | Player"
MakeSource = Callable[[Needs], ToolSource]
"""Makes a source of what there is; the front door is there."""
APPROVALS = "approvals.yaml"
POSTING = "hermes_agent.runs.posting:Posting"


def delivers_nothing(_: str) -> bool:
    """Runs of this process are listened to, and say nothing through the outbox."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How one process uses the system.

    `model` replaces the configured one. `queue` and `own_only` say whose messages it works on, `most` how many runs at
    a time (see `Hermes`); `delivers` and `here` whose sessions are spoken to through the outbox (see `Posting`; by
    default, where the work is everybody's, those of the channels in the settings); `people` are those of the channels.
    `attended` says whether a person is there to answer questions. `toolsets` and `capabilities` narrow what the agent
    has (None: all of it); `extra_tools` are added, and `tool_sources` make sources beside those of the table. `tape`
    records the process, or is what it replays. `standing` says what a principal, by their key, is to this agent;
    without an access list whoever speaks on this machine is its owner, and everybody else a guest. `titles` says
    whether sessions get titles from a model (`auxiliary.title`), `reviews` whether conversations are reviewed here,
    beside the runs; otherwise that waits for a process that does.
    `restart` has this process begin again (None: it cannot); `pseudonyms`
    hides in the log what only the platforms may know. `platform` gives what the prompt says of a channel; `reading`
    says how replies of this process are read. `strict_input` refuses what would be kept as a file; `allow` are globs of
    calls that need no approval.
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

    def service(self, store: Store, people: People, afterwards: Afterwards) -> Service:
        """How a process of these options serves everybody."""
        delivers = self.delivers or (delivers_nothing if self.own_only else people.channels.__contains__)
        silent = delivers is delivers_nothing
        posting = None if silent else late(POSTING)(outbox=store.outbox, delivers=delivers, here=self.here)
        return Service(most=self.most, posting=posting, afterwards=(afterwards,))


@dataclass(kw_only=True)
class Process:
    """What lasts as long as a process, whatever its settings become.

    `seam` stands between the runs and the world, with the time and the ids that they see; `machine` is the machine's
    own clock. `limits` are those of a replay. `standings` say who speaks, `unasked` which runs go without questions,
    `reserved` which names no skill may have; `owner` is the person of this machine. `hermes` is the front door: it is
    there before anything is made of settings.
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
    hermes: Hermes = field(init=False)

    @property
    def model(self) -> str:
        """The model that was chosen for this process (empty: as configured)."""
        return self.options.model

    @property
    def has_cassette(self) -> bool:
        """Whether the process is recorded or replayed."""
        return self.options.tape is not None

    @property
    def restart(self) -> Callable[[], None] | None:
        """Has this process begin again (None: it cannot)."""
        return self.options.restart

    @property
    def clock(self) -> Clock:
        """The time as runs see it."""
        return self.seam.clock

    @property
    def ids(self) -> Ids:
        """Ids as runs are given them."""
        return self.seam.ids


def own_tools(needs: Needs) -> ToolSource:
    """The tools that a program brings."""
    return FixedTools(needs.get(Options).extra_tools)
