"""Recorder: the seam that runs everything live and writes it to a cassette; opens the seam of a cassette."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

from hermes_agent.agent.agent import Agent, Labels
from hermes_agent.agent.prompt import Environment, TailSource
from hermes_agent.core.chat import Inbound
from hermes_agent.core.clock import Clock, Ids, SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import CassetteError, HermesError
from hermes_agent.core.events import Outcome
from hermes_agent.core.messages import Delta, Message, Model, ModelRequest, Origin, Prefix, Reply, Through
from hermes_agent.core.spending import Grant, Limits, Rules
from hermes_agent.providers.broker import CallOpened, CallSettled, Ledger
from hermes_agent.providers.routing.endpoint import Sizes
from hermes_agent.replay.cassette import CassetteFile, Digests, Redact, digest, read_cassette, whole_words
from hermes_agent.replay.lines import (
    VERSION,
    Answered,
    Arrived,
    Asked,
    Changed,
    Header,
    Item,
    MessageShown,
    Piece,
    PrefixShown,
    Process,
    RecordedSection,
    RowOpened,
    RowSettled,
    RunBegun,
    RunOver,
    Seen,
    SessionMade,
    TrustLooked,
    Whole,
    noted,
)
from hermes_agent.replay.recorded_calls import RecordedCalls
from hermes_agent.replay.replayer import Player, Replay, player_of
from hermes_agent.replay.seam import Live, Look, RunLedger, RunSeam, Schemas, Seam
from hermes_agent.replay.tracks import RecordedGate, RecordedStops, RecordedTrack, ids_of
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session
from hermes_agent.version import VERSION as PROGRAM


class RecordedModel(Through):
    """Model wrapper that records each request and its answer. `stops` belong to the run it works for."""

    def __init__(self, track: RecordedTrack, stops: RecordedStops, steps: Iterator[int], written: set[str]) -> None:
        self._stops = stops
        self._track = track
        self._redact = track.file.redact
        self._steps = steps
        self._written = written
        self._digests = Digests(track.file.redact)
        self._pieces: list[Piece] = []
        self._prefixes: dict[str, str] = {}
        self._step = 0
        self._asking = False

    async def bind(self, ledger: Ledger, live: Live) -> RecordedModel:
        """Set the real model, made by `live` with a ledger whose rows are recorded too."""
        super().__init__(await live(RecordedLedger(ledger, self.add)))
        return self

    async def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `core.model.Model`."""
        await self._stops.passed()
        self._goes_out(request)
        try:
            await self._stops.entered(self)
            async with aclosing(self._model.ask(request)) as items:
                async for item in items:
                    await self._stops.passed()
                    self._came(item)
                    yield item
        except HermesError as error:
            await self._stops.passed()
            self.add(noted(error))
            self._end()
            raise
        finally:
            if self._asking:
                self._track.tick()
                self._end(cut=True)

    def _goes_out(self, request: ModelRequest) -> None:
        self._track.tick()
        self._pieces, self._asking = [], True
        kept, added = self._shown(request.messages)
        prefix = self._prefix(request.prefix)
        self._step = next(self._steps)
        self._track.add(
            Asked(
                n=self._step,
                track=self._track.name,
                purpose=request.purpose,
                model=self.name,
                window=self.window,
                turn=request.turn,
                prefix=prefix,
                kept=kept,
                added=added,
                effort=request.effort,
                use_tools=request.use_tools,
                max_output=request.max_output,
            )
        )

    def _came(self, item: Delta | Reply) -> None:
        self.add(Whole(reply=item) if isinstance(item, Reply) else item)
        if isinstance(item, Reply):
            self._end()

    def add(self, item: Item) -> None:
        """Record one item of the answer."""
        self._track.tick()
        clock = self._track.clock
        self._pieces.append(Piece(at=clock.now(), t=clock.monotonic(), item=item))

    def _end(self, *, cut: bool = False) -> None:
        """Record the end of the answer; `cut` if the caller cancelled it."""
        self._asking = False
        self._stops.left(self)
        pieces = whole_words(self._pieces, self._redact)
        self._track.add(Answered(n=self._step, track=self._track.name, pieces=pieces, cut=cut))

    def _shown(self, messages: Sequence[Message]) -> tuple[int, tuple[str, ...]]:
        """How many messages equal those of the previous request, and the digests of the others, which are stored
        once."""
        kept, ids = self._digests.follow(messages)
        for message, id_ in zip(messages[kept:], ids[kept:], strict=True):
            self._once(MessageShown(id=id_, message=message))
        return kept, ids[kept:]

    def _prefix(self, prefix: Prefix) -> str:
        if prefix.hash not in self._prefixes:
            self._prefixes[prefix.hash] = digest([prefix.system, prefix.tools], self._redact)
            self._once(PrefixShown(id=self._prefixes[prefix.hash], prefix=prefix))
        return self._prefixes[prefix.hash]

    def _once(self, line: MessageShown | PrefixShown) -> None:
        if line.id not in self._written:
            self._written.add(line.id)
            self._track.file.add(line)


class RecordedLedger:
    """Wrapper of a usage ledger that records the rows of a model call among the items of its answer."""

    def __init__(self, ledger: Ledger, add: Callable[[Item], None]) -> None:
        self._ledger = ledger
        self._add = add

    @property
    def sizes(self) -> Sizes:
        """As the book itself."""
        return self._ledger.sizes

    async def open(self, call: CallOpened) -> Grant:
        """As the book itself."""
        self._add(RowOpened(call=call))
        return await self._ledger.open(call)

    async def complete(self, call: CallSettled) -> None:
        """As the book itself."""
        self._add(RowSettled(call=call))
        await self._ledger.complete(call)


class Recorder(Seam):
    """Interface to the world (`Seam`) that passes everything through live and records it to a cassette; the next
    system of this process can continue the recording."""

    def __init__(self, path: Path, machine: Clock) -> None:
        self._seed = secrets.token_hex(16)
        super().__init__(machine, ids_of(self._seed, "process"))
        self.store_ids = ids_of(self._seed, "store")
        self.file = CassetteFile(path, str)
        self._tracks: dict[str, RecordedTrack] = {}
        self._known: set[str] = set()
        self._offered: dict[str, Schemas] = {}
        self._steps = count(1)
        self._written: set[str] = set()

    def start(self, redact: Redact, process: Process) -> None:
        """Open the file and write the header if it is new. Raises `CassetteError`."""
        self.file.redact = redact
        if self.file.open():
            at, t = self.clock.now(), self.clock.monotonic()
            self.file.add(Header(version=VERSION, seed=self._seed, at=at, t=t, program=PROGRAM, process=process))

    def track(self, session: str, purpose: str = "") -> RecordedTrack:
        """The track of a session, or of one of its background purposes."""
        key = f"{session}/{purpose}" if purpose else session
        if key not in self._tracks:
            number = str(sum("/" not in known for known in self._tracks) + 1)
            name = f"{self.track(session).name}/{purpose}" if purpose else number
            self._tracks[key] = RecordedTrack(name, self.clock, self._seed, self.file)
        return self._tracks[key]

    def own(self, session: str, purpose: str = "") -> RunSeam:
        """A clock that stands still between inputs, and the recording's ids."""
        track = self.track(session, purpose)
        return RunSeam(clock=track.clock, ids=track.ids, gate=RecordedGate(track), when=self.track(session).stops.when)

    def made(self, session: Session) -> None:
        """Record a new session."""
        self._known.add(session.id)
        self.file.add(SessionMade(track=self.track(session.id).name, session=session))

    def arrived(self, session: str, inbound: Inbound, at: float) -> None:
        """Record an inbound message."""
        self.file.add(Arrived(track=self.track(session).name, at=at, inbound=inbound))

    async def changed(self, session: str, store: Store, since: int | None = None) -> None:
        """Record a command's change of the session. A session not yet recorded is recorded whole with its first run."""
        record = await store.sessions.get(session) if session in self._known else None
        if record is not None:
            entries = () if since is None else tuple(await store.history.entries(session, since))
            name = self.track(session).name
            self.file.add(Changed(track=name, session=record, held=since is not None, entries=entries))

    async def start_run(self, session: Session, store: Store) -> None:
        """Start a run; records the session with its log first if it is older than the recording."""
        track = self.track(session.id)
        track.tick()
        track.ids.restart()
        if session.id in self._known:
            return
        self._known.add(session.id)
        entries = tuple(await store.history.entries(session.id))
        hashes = {entry.event.hash for entry in entries if entry.event.kind == "prefix_frozen"}
        found = [await store.prefixes.get(each) for each in sorted(hashes)]
        prefixes = tuple(prefix for prefix in found if prefix is not None)
        self.file.add(SessionMade(track=track.name, session=session, entries=entries, prefixes=prefixes))

    def refused(self, session: str, error: HermesError) -> None:
        """Record that a run could not start."""
        track = self.track(session)
        track.add(RunBegun(track=track.name, limits=Limits(), effort="", error=noted(error)))

    async def ended(self, session: str, outcome: Outcome, number: int, *, released: bool) -> None:
        """Record the end of a run."""
        track = self.track(session)
        track.stops.over()
        self.file.add(RunOver(track=track.name, outcome=outcome, number=number, released=released))

    async def model(self, session: str, purpose: str, ledger: Ledger, live: Live) -> Model:
        """A recording model. Outside of a run, no stop applies to it."""
        track = self.track(session, purpose)
        stops = self.track(session).stops if isinstance(ledger, RunLedger) else RecordedStops(track)
        return await RecordedModel(track, stops, self._steps, self._written).bind(ledger, live)

    async def environment(self, session: str, look: Look) -> Environment:
        """Read and record the prompt environment."""
        found = await look()
        tools = self._offered.get(session, ())
        self.file.add(Seen(track=self.track(session).name, facts=found, tools=tools))
        return found

    def offered(self, session: str, tools: Schemas) -> Schemas:
        """The process's own tools, recorded with the environment."""
        self._offered[session] = tools
        return tools

    def tail(self, session: str, sources: Sequence[TailSource]) -> Sequence[TailSource]:
        """Wrap the tail sources to record their texts."""
        return [RecordedSource(source=each, track=self.track(session)) for each in sources]

    def outfit(self, session: str, agent: Agent) -> Agent:
        """The agent with its tool calls recorded."""
        track, limits = self.track(session), agent.budget.limits
        compaction = None if agent.compactor is None else agent.compactor.settings
        track.add(RunBegun(track=track.name, limits=limits, effort=agent.effort, compaction=compaction))
        track.stops.begun()
        calls = RecordedCalls(track)
        labels = agent.labels and RecordedLabels(labels=agent.labels, track=track)
        return replace(agent, tools=calls.toolbox(agent.tools), hooks=(calls.around(agent.hooks),), labels=labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSource:
    """Wrapper of one source of the prompt's tail that records its texts."""

    source: TailSource
    track: RecordedTrack

    @property
    def name(self) -> str:
        """As the source's."""
        return self.source.name

    @property
    def origin(self) -> Origin:
        """As the source's."""
        return self.source.origin

    async def words(self, session: str, heard: str) -> str:
        """As the source says it."""
        words = await self.source.words(session, heard)
        self.track.file.add(RecordedSection(track=self.track.name, name=self.name, words=words))
        return words


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLabels:
    """Wrapper of `agent.Labels` that records which files were the trusted workspace's."""

    labels: Labels
    track: RecordedTrack

    async def is_trusted(self, paths: Sequence[str], said: str = "") -> bool:
        """As the labels say it."""
        trusted = await self.labels.is_trusted(paths, said)
        self.track.file.add(TrustLooked(track=self.track.name, paths=tuple(paths), trusted=trusted))
        return trusted

    async def doubt(self, since: float, until: float) -> None:
        """As the labels note it."""
        await self.labels.doubt(since, until)


OpenedSeam = tuple[Seam, str, Ids | None, Rules | None]
"""The seam, where the rows are kept (empty: as configured), the ids of the store, and the limits."""


def tape(
    *, record: str = "", replay: str = "", nearest: bool = False, live_from: int | None = None
) -> Recorder | Player | None:
    """Recorder or player for these options; None without any. Raises `CassetteError` for unreadable files or
    conflicting options."""
    if record and replay:
        raise CassetteError("A replay cannot be recorded: leave out --record or --replay.")
    if not replay and (nearest or live_from is not None):
        raise CassetteError("--nearest and --live-from say how to replay: --replay FILE is missing.")
    if nearest and live_from is not None:
        raise CassetteError("--nearest replays everything; --live-from continues live: choose one.")
    if record:
        return Recorder(Path(record), SystemClock())
    how = Replay(nearest=nearest, live_from=live_from)
    return player_of(read_cassette(Path(replay)), how) if replay else None


@contextmanager
def opened_seam(tape: Recorder | Player, redact: Redact, process: Process) -> Iterator[OpenedSeam]:
    """Context manager: the seam that records or replays. Raises `CassetteError`."""
    if isinstance(tape, Recorder):
        tape.start(redact, process)
        try:
            yield tape, "", tape.store_ids, None
        finally:
            tape.file.close()
        return
    tape.redact = redact
    if tape.how.is_live:
        yield tape, "", None, None
        return
    with tempfile.TemporaryDirectory(prefix="hermes-replay-") as folder:
        database = tape.how.database or str(Path(folder) / "hermes.db")
        yield tape, database, tape.store_ids, tape.cassette.header.process.rules
