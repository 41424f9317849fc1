"""Replaying: the tracks of a cassette, and which model and tools stand in for the real ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, get_args

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import CassetteError
from hermes_agent.core.model import Model, ToolSchema
from hermes_agent.providers.broker import Ledger
from hermes_agent.replay.cassette.differing import Questions
from hermes_agent.replay.cassette.lines import Arrived, MailRead, Outside, RecordedSection, RunBegun, RunOver, Turn
from hermes_agent.replay.cassette.raised import raised
from hermes_agent.replay.cassette.reading import Cassette
from hermes_agent.replay.cassette.redacting import Redact
from hermes_agent.replay.cassette.replayed_calls import Calls, NearestCalls, StrictCalls
from hermes_agent.replay.cassette.replayed_model import LiveFrom, NearestModel, StrictModel
from hermes_agent.replay.cassette.tracks import ReplayedTrack, TapeClock, ids_of

Live = Callable[[Ledger], Awaitable[Model]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """How a cassette is replayed.

    Strictly, unless `nearest` or something is live: `live_from` is the first step that is asked for real, with real
    tools; with `model` alone, that model is asked all along and tools are answered from the recording. `driven`: the
    messages and stops come from the recording too, so that nobody else brings any. `database` is where a replay
    without anything live keeps its rows; empty: in a temporary folder.
    """

    path: Path
    nearest: bool = False
    live_from: int | None = None
    model: str = ""
    driven: bool = False
    database: str = ""

    @property
    def is_live(self) -> bool:
        """Whether a real model is asked at some point: then time and ids are those of now, and what it costs counts."""
        return self.live_from is not None or bool(self.model)

    @property
    def first_live(self) -> int:
        """The first step that is asked for real."""
        return 1 if self.live_from is None else self.live_from

    @property
    def runs_tools(self) -> bool:
        """Whether tools run from the first live step on."""
        return self.live_from is not None


class Player:
    """One replay; it may outlive the runtime that it is played in, and go on with the next one."""

    def __init__(self, cassette: Cassette, how: Replay) -> None:
        self.cassette = cassette
        self.how = how
        seed = cassette.header.seed
        self.clock = TapeClock(cassette.header.at, cassette.header.t)
        self.ids = ids_of(seed, "process")
        self.store_ids = ids_of(seed, "store")
        self._seed = seed
        self._tracks: dict[str, ReplayedTrack] = {}
        self._names: dict[str, str] = {}
        self._arrivals = [line for line in cassette.lines if isinstance(line, Arrived)]
        self._questions: dict[str, Questions] = {}
        self._told: defaultdict[str, list[RecordedSection]] = defaultdict(list)
        for line in cassette.lines:
            if isinstance(line, RecordedSection):
                self._told[line.track].append(line)
        self._look_ahead()

    def track(self, session: str, purpose: str = "") -> ReplayedTrack:
        """The track of a session: the nth session that comes up is the nth one of the recording."""
        number = self._names.setdefault(session, str(len(self._names) + 1))
        name = f"{number}/{purpose}" if purpose else number
        if name not in self._tracks:
            skipped: tuple[type[Turn], ...] = () if self.how.driven else (*get_args(Outside), MailRead)
            self._tracks[name] = ReplayedTrack(name, self._seed, self.cassette.turns(name), skipped)
        return self._tracks[name]

    def bind(self, session: str, track: str) -> None:
        """This session is the recording's track of that name."""
        self._names[session] = track

    def made(self, session: str) -> None:
        """A session was made."""
        self.track(session)
        self._look_ahead()

    def arrives(self, line: Arrived) -> None:
        """This message is the next one that is taken in."""
        self._arrivals.remove(line)
        self._arrivals.insert(0, line)

    def arrival(self) -> float:
        """When the message came in that is taken in now; the process's clock goes on to the next one."""
        at = self._arrivals.pop(0).at if self._arrivals else self.clock.now()
        self._look_ahead()
        return at

    async def begin(self, session: str) -> RunBegun:
        """A run begins, with the recorded limits. Raises what kept it from beginning."""
        track = self.track(session)
        line = await track.turn(RunBegun, lambda _line: True, f"a run of session {session} begins")
        track.ids.restart()
        if line.error is not None:
            raise raised(line.error)
        return line

    async def over(self, session: str) -> None:
        """A run is over; where the recording ends before that, nothing follows anyway."""
        track = self.track(session)
        track.unstuck()
        if track.ahead(RunOver, lambda _line: True) is not None:
            await track.turn(RunOver, lambda _line: True, f"a run of session {session} ends")

    async def model(self, session: str, purpose: str, redact: Redact, ledger: Ledger, live: Live) -> Model:
        """What answers instead of the model. Raises as `live` where something is live."""
        track = self.track(session, purpose)
        questions = self._questions.setdefault(track.name, Questions(self.cassette, redact))
        if self.how.is_live:
            steps = [
                (asked, each) for asked, each in self.cassette.steps if each is not None and asked.track == track.name
            ]
            return LiveFrom(steps, questions, await live(ledger), self.how.first_live)
        if self.how.nearest:
            return NearestModel(self.cassette, self.clock_of(session), questions, ledger)
        return StrictModel(self.cassette, track, questions, ledger, cuts=self.how.driven)

    def calls(self, session: str) -> Calls:
        """What answers instead of the tools."""
        if self.how.nearest or self.how.is_live:
            return NearestCalls(self.cassette)
        return StrictCalls(self.track(session), cuts=self.how.driven)

    def clock_of(self, session: str) -> TapeClock:
        """The clock of a session."""
        return self.track(session).clock

    def environment(self, session: str) -> Mapping[str, Any]:
        """What was found out for the session's prefix. Raises `CassetteError` where nothing was recorded."""
        found = self.cassette.environment.get(self.track(session).name)
        if found is None:
            raise CassetteError("The recording has no prompt for this session: it ends before the first question.")
        return found.facts

    def names_told(self, session: str) -> list[str]:
        """The sources of the tail that spoke beside this session's messages, in their order."""
        return list(dict.fromkeys(line.name for line in self._told[self.track(session).name]))

    def section_text(self, session: str, name: str) -> str:
        """What this source says now; where it said nothing any more, what it said last."""
        lines = self._told[self.track(session).name]
        mine = [line for line in lines if line.name == name]
        if len(mine) > 1:
            lines.remove(mine[0])
        return mine[0].words if mine else ""

    def offered(self, session: str) -> tuple[ToolSchema, ...]:
        """The tools of the session's first prompt; none where there was no prompt."""
        found = self.cassette.environment.get(self.track(session).name)
        return () if found is None else found.tools

    def _look_ahead(self) -> None:
        """The process's clock says when the next message was received, for whoever is about to take it in."""
        if self._arrivals:
            self.clock.set(self._arrivals[0].inbound.received, self.clock.monotonic())
