"""How one process uses the system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from hermes_agent.app.chats.people import People
from hermes_agent.app.chats.platforms import PlatformOf, own_platform
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.tool import Tool
from hermes_agent.host.late import late
from hermes_agent.runs.one_run import Afterwards, Service
from hermes_agent.store.database import Store
from hermes_agent.tools.surfaces import StandingOf, standing_here

if TYPE_CHECKING:
    from hermes_agent.replay.recorder import Recorder
    from hermes_agent.replay.replayer import Player

Tape: TypeAlias = "Recorder | Player"
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
    has (None: all of it); `extra_tools` are added. `tape` records the process, or is what it replays. `standing` says
    what a principal, by their key, is to this agent; without an access list whoever speaks on this machine is its
    owner, and everybody else a guest. `titles` says whether sessions get titles from a model (`auxiliary.title`),
    `reviews` whether conversations are reviewed here, beside the runs; otherwise that waits for a process that does.
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
