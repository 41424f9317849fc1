"""Recording: the tracks of a process, and what each line is written of."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from hermes_agent.core.budget import Limits
from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import HermesError
from hermes_agent.core.model import Model
from hermes_agent.providers.broker import Ledger
from hermes_agent.replay.cassette.lines import (
    VERSION,
    Changed,
    Header,
    Line,
    Process,
    RunBegun,
    SessionMade,
)
from hermes_agent.replay.cassette.raised import noted
from hermes_agent.replay.cassette.recorded_calls import RecordedCalls
from hermes_agent.replay.cassette.recorded_model import RecordedLedger, RecordedModel, Sheet
from hermes_agent.replay.cassette.redacting import Redact
from hermes_agent.replay.cassette.stops import RecordedStops
from hermes_agent.replay.cassette.tracks import RecordedTrack, ids_of
from hermes_agent.replay.cassette.writing import CassetteFile
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session
from hermes_agent.version import VERSION as PROGRAM

Live = Callable[[Ledger], Awaitable[Model]]
"""Makes the model that is really asked, writing into this book."""


class Recorder:
    """One recording; it may outlive the runtime that it records, and go on with the next one."""

    def __init__(self, path: Path, machine: Clock) -> None:
        self.clock = machine
        self._path = path
        self._seed = secrets.token_hex(16)
        self.ids = ids_of(self._seed, "process")
        self.store_ids = ids_of(self._seed, "store")
        self._file: CassetteFile | None = None
        self._tracks: dict[str, RecordedTrack] = {}
        self._stops: dict[str, RecordedStops] = {}
        self._known: set[str] = set()
        self._steps = count(1)
        self._written: set[str] = set()

    def start(self, redact: Redact, process: Process) -> None:
        """Open the file. Raises `CassetteError`."""
        if self._file is not None:
            self._file.redact = redact
            self._file.open()
            return
        file = CassetteFile(self._path, redact)
        file.open()
        self._file = file
        file.add(
            Header(
                version=VERSION,
                seed=self._seed,
                at=self.clock.now(),
                t=self.clock.monotonic(),
                program=PROGRAM,
                process=process,
            )
        )

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    @property
    def file(self) -> CassetteFile:
        """Where the lines go."""
        assert self._file is not None  # nothing is recorded before `start`
        return self._file

    def add(self, line: Line) -> None:
        """Write a line."""
        self.file.add(line)

    def name(self, session: str) -> str:
        """The name of a session's track."""
        return self.track(session).name

    def track(self, session: str, purpose: str = "") -> RecordedTrack:
        """The track of a session, or of what goes on beside it for a purpose."""
        key = f"{session}/{purpose}" if purpose else session
        if key not in self._tracks:
            number = str(sum("/" not in known for known in self._tracks) + 1)
            name = f"{self.track(session).name}/{purpose}" if purpose else number
            self._tracks[key] = RecordedTrack(name, self.clock, self._seed)
        return self._tracks[key]

    def made(self, session: Session) -> None:
        """A session was made."""
        self._known.add(session.id)
        self.file.add(SessionMade(track=self.track(session.id).name, session=session))

    async def changed(self, session: str, store: Store, since: int | None) -> None:
        """A command changed the session; with `since` it had the log to itself, and wrote what follows that number. One
        that was not in a run yet is taken in as a whole when it is."""
        record = await store.sessions.get(session) if session in self._known else None
        if record is not None:
            entries = () if since is None else tuple(await store.history.entries(session, since))
            self.file.add(Changed(track=self.name(session), session=record, held=since is not None, entries=entries))

    async def start_run(self, session: Session, store: Store) -> None:
        """A run of this session begins; where it was there before the recording, what it is goes into the recording."""
        track = self.track(session.id)
        track.tick()
        track.ids.restart()
        if session.id in self._known:
            return
        self._known.add(session.id)
        entries = tuple(await store.history.entries(session.id))
        hashes = {entry.event.hash for entry in entries if entry.event.kind == "prefix_frozen"}
        prefixes = [await store.prefixes.get(each) for each in sorted(hashes)]
        self.file.add(
            SessionMade(
                track=self.track(session.id).name,
                session=session,
                entries=entries,
                prefixes=tuple(prefix for prefix in prefixes if prefix is not None),
            )
        )

    def begun(self, session: str, limits: Limits, effort: str, *, compaction: Mapping[str, Any]) -> None:
        """A run begins."""
        self._begun(session, limits, effort, compaction, None)
        self.stops(session).begun()

    def refused(self, session: str, error: HermesError) -> None:
        """A run cannot begin."""
        self._begun(session, Limits(), "", {}, error)

    def _begun(
        self, session: str, limits: Limits, effort: str, compaction: Mapping[str, Any], error: HermesError | None
    ) -> None:
        track = self.track(session)
        at, t = track.clock.now(), track.clock.monotonic()
        told = None if error is None else noted(error)
        self.file.add(
            RunBegun(track=track.name, at=at, t=t, limits=limits, effort=effort, compaction=compaction, error=told)
        )

    def stops(self, session: str) -> RecordedStops:
        """What strikes the runs of a session."""
        if session not in self._stops:
            self._stops[session] = self._new_stops(session)
        return self._stops[session]

    def _new_stops(self, session: str) -> RecordedStops:
        return RecordedStops(self.file, self.name(session), self.clock)

    async def model(self, session: str, purpose: str, ledger: Ledger, live: Live, *, in_run: bool = True) -> Model:
        """The model, its exchanges recorded; without a `purpose` it is the session's own. One that is not `in_run` is
        no place where a stop may strike."""
        sheet = Sheet(self.file, self.track(session, purpose), self._steps, self._written)
        stops = self.stops(session) if in_run else self._new_stops(session)
        return RecordedModel(await live(RecordedLedger(ledger, sheet)), sheet, stops)

    def calls(self, session: str) -> RecordedCalls:
        """What records the tool calls of a session."""
        return RecordedCalls(self.file, self.track(session), self.stops(session))
