"""Replay driver: feeds a recording's sessions, messages and stops to the system again, and compares the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import field, replace

from hermes_agent.agent.stop import TIME_UP
from hermes_agent.app.auxiliary.settings import Purpose
from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.system import System
from hermes_agent.core.chat import Busy, Inbound
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Entry, Outcome, Replied, RunEnded, Seen, ToolEnded
from hermes_agent.core.messages import Message
from hermes_agent.host.paths import Home
from hermes_agent.replay.cassette import Cassette
from hermes_agent.replay.lines import (
    Answered,
    Arrived,
    Asked,
    Changed,
    Raised,
    RunBegun,
    RunOver,
    SessionMade,
    StopAsked,
    Whole,
)
from hermes_agent.replay.replayer import LiveReplayer, Replayer
from hermes_agent.replay.tracks import ReplayedTrack, is_cut
from hermes_agent.store.sessions import Session
from hermes_agent.store.transaction import Transaction

Watch = Callable[[Seen], None]
HOPS = 3
"""Passes of the event loop after which a run that was stopped knows of it."""
PATIENCE = 10.0
"""Seconds for the last messages, once the last run has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A session after its replay: its track in the recording, its new id and its log."""

    track: str
    session: str
    entries: tuple[Entry, ...]


@asynccontextmanager
async def played(
    home: Home, player: Replayer | LiveReplayer, watch: Watch = lambda _seen: None
) -> AsyncIterator[tuple[Played, ...]]:
    """Context manager: play all sessions of a recording; the store stays open inside the block. Raises
    `HermesError`."""
    process = player.cassette.header.process
    options = Options(
        model=player.how.model,
        queue=process.queue,
        attended=process.attended and not player.how.is_live,
        tape=player,
    )
    async with open_system(home, options) as runtime:
        drive = Driver(runtime, player, watch) if isinstance(player, Replayer) else Live(runtime, player, watch)
        yield tuple([await drive.session(made) for made in player.cassette.sessions.values()])


class Driver:
    """Replays a recording: feeds its messages, stops and changes to the system, one session after the other."""

    def __init__(self, runtime: System, player: Replayer, watch: Watch) -> None:
        self._runtime = runtime
        self._player = player
        self._watch = watch

    async def session(self, made: SessionMade) -> Played:
        """Play one session to its end."""
        record = made.session
        self._player.bind(record.id, made.track)
        await self._make(made)
        begun = sum(isinstance(line, RunBegun) for line in self._player.cassette.turns(made.track))
        async with asyncio.TaskGroup() as group:
            bringing = group.create_task(self._bring(record.id, self._player.track(record.id)))
            await self._until(record.id, begun, after=len(made.entries))
            await asyncio.wait((bringing,), timeout=PATIENCE)
            bringing.cancel()
        await self._title(record.id)
        entries = await self._runtime.store.history.entries(record.id)
        return Played(track=made.track, session=record.id, entries=tuple(entries))

    async def _title(self, session: str) -> None:
        """Wait for the session's title, or until the recorded part of it is used up."""
        track = self._player.track(session, Purpose.TITLE)
        if track.is_empty:
            return
        async with asyncio.TaskGroup() as group:
            ways = [group.create_task(self._runtime.settled()), group.create_task(track.stuck())]
            await asyncio.wait(ways, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()

    async def _make(self, made: SessionMade) -> None:
        """Create the session's row, and its log up to the start of the recording."""
        store, record = self._runtime.store, made.session

        async def change(tx: Transaction) -> None:
            await store.sessions.create(tx, record)
            await store.sessions.set_current(tx, record.conversation, record.id)
            for frozen in made.prefixes:
                await store.prefixes.put(tx, frozen.prefix, frozen.sections)

        await store.write(change)
        if made.entries:
            await self._append(record.id, made.entries)

    async def _append(self, session: str, entries: Sequence[Entry]) -> None:
        """Write log entries under an exclusive lease."""
        store = self._runtime.store
        lease = await store.lanes.hold(session, self._player.cassette.header.process.queue)
        if lease is None:
            raise HermesError(f"Session {session} is busy.")
        await store.write(lambda tx: store.history.append(tx, lease, entries))
        await store.lanes.release(lease)

    async def _until(self, session: str, runs: int, after: int) -> None:
        """Watch until this many runs have ended."""
        if not runs:
            return
        async with aclosing(self._runtime.hermes.watch(session, after)) as events:
            async for seen in events:
                self._watch(seen)
                runs -= isinstance(seen.event, RunEnded)
                if not runs:
                    return

    async def _bring(self, session: str, track: ReplayedTrack) -> None:
        while (line := await track.next_from_outside()) is not None:
            match line:
                case Arrived():
                    await self._submit(session, track, line)
                    track.come(line)  # What follows has to find it in the inbox.
                case Changed():
                    await self._change(session, line)
                    track.come(line)
                case StopAsked(reason=reason):
                    await self._stop(session, track, reason)
                case _:
                    await self._stop(session, track, TIME_UP)

    async def _submit(self, session: str, track: ReplayedTrack, line: Arrived) -> None:
        self._player.arrives(line)
        if track.ahead(RunOver, lambda _line: True) or track.ahead(RunBegun, lambda _line: True):
            await self._runtime.hermes.submit(line.inbound, session)
        else:  # The recording ends before anybody read it.
            queue = self._player.cassette.header.process.queue
            await self._runtime.store.inbox.accept(line.inbound, session, queue, at=self._player.arrival())

    async def _change(self, session: str, line: Changed) -> None:
        """Apply what a slash command changed in the session."""
        sessions, new = self._runtime.store.sessions, line.session
        old = await self._runtime.hermes.record(session)
        if old.title != new.title:
            await sessions.rename(session, new.title, new.updated)
        if old.model != new.model:
            await sessions.set_model(session, new.model)
        if line.held:
            await self._append(session, line.entries)

    async def _stop(self, session: str, track: ReplayedTrack, reason: str) -> None:
        """Stop the run at the recorded point; a stop that came too late then is ignored."""
        if track.will_be_stopped:
            await track.stuck()
            for cut in track.cuts:
                track.clock.set(cut.at, cut.t)
            self._runtime.hermes.stop_now(session, reason)
        await self._consume(track)

    async def _consume(self, track: ReplayedTrack) -> None:
        """Mark the stop and the lines it cut off as consumed, once the run has noticed it."""
        for _ in range(HOPS):
            await asyncio.sleep(0)
        if (line := track.coming) is not None and not is_cut(line):
            track.come(line)
        for cut in track.cuts:
            track.come(cut)


class Live:
    """Replays a recording's messages with live models in new sessions, each after the previous one was answered."""

    def __init__(self, runtime: System, player: LiveReplayer, watch: Watch) -> None:
        self._runtime = runtime
        self._player = player
        self._watch = watch

    async def session(self, made: SessionMade) -> Played:
        """Play one session; each message waits for the end of the previous run."""
        runtime, old = self._runtime, made.session
        arrived = [line.inbound for line in self._player.cassette.turns(made.track) if isinstance(line, Arrived)]
        words = [inbound for inbound in arrived if inbound.parts and not inbound.answers]
        if not words:
            raise HermesError("The recording holds no message to begin with.")
        first = words[0]
        record = await runtime.hermes.open_session(
            first.conversation, runtime.owner, workspace=old.workspace, model=self._player.how.model, new=True
        )
        self._player.bind(record.id, made.track)
        for inbound in words:
            await self._say(record, inbound)
        return Played(
            track=made.track, session=record.id, entries=tuple(await runtime.store.history.entries(record.id))
        )

    async def _say(self, record: Session, inbound: Inbound) -> None:
        runtime = self._runtime
        after = await runtime.store.history.last_number(record.id)
        fresh = replace(inbound, source="replay", source_id=runtime.ids.short(), received=runtime.clock.now())
        await runtime.hermes.submit(replace(fresh, busy=Busy.QUEUE, model=""), record.id)
        async with aclosing(runtime.hermes.follow(record.id, after)) as events:
            async for seen in events:
                self._watch(seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One model call of a recording, as a row for people."""

    step: int
    session: str
    purpose: str
    model: str
    turn: int
    seconds: float
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Outcome of a replayed session: the end of its last run, whether that failed, and each difference from the
    recording as a sentence."""

    session: str
    runs: int
    steps: int
    calls: int
    ended: str
    failed: bool = False
    differences: tuple[str, ...] = field(default_factory=tuple)

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def steps_of(cassette: Cassette) -> tuple[Step, ...]:
    """The model exchanges of a recording, in order."""
    return tuple(_step(cassette, asked, answered) for asked, answered in cassette.steps)


def verdict_of(cassette: Cassette, played: Played) -> Verdict:
    """Compare a replayed session with its recording."""
    ends = [entry.event for entry in played.entries if isinstance(entry.event, RunEnded)]
    return Verdict(
        session=played.session,
        runs=len(ends),
        steps=sum(isinstance(entry.event, Replied) for entry in played.entries),
        calls=sum(isinstance(entry.event, ToolEnded) for entry in played.entries),
        ended=ends[-1].text if ends else "",
        failed=bool(ends) and ends[-1].outcome is Outcome.FAILED,
        differences=tuple(_differences(cassette, played, ends)),
    )


def _step(cassette: Cassette, asked: Asked, answered: Answered | None) -> Step:
    made = cassette.sessions.get(asked.track.partition("/")[0])
    return Step(
        step=asked.n,
        session=asked.track if made is None else made.session.id,
        purpose=asked.purpose,
        model=asked.model,
        turn=asked.turn,
        seconds=0.0 if answered is None else answered.t - asked.t,
        said="(the recording ends here)" if answered is None else _said(answered),
    )


def _said(answered: Answered) -> str:
    item = answered.pieces[-1].item if answered.pieces else None
    if answered.cut:
        return "(stopped)"
    if isinstance(item, Raised):
        return f"{item.error}: {item.text}"
    return _words(item.reply.message) if isinstance(item, Whole) else ""


def _words(message: Message) -> str:
    calls = ", ".join(call.name for call in message.tool_calls)
    return " ".join([*message.text.split(), *([f"[{calls}]"] if calls else [])])


def _differences(cassette: Cassette, played: Played, ends: list[RunEnded]) -> Iterator[str]:
    """Differences as sentences: replays that could not continue, and logs that ended elsewhere than recorded."""
    for end in ends:
        if end.error in ("CassetteError", "RequestDiffers"):
            yield end.text
    recorded = [line for line in cassette.turns(played.track) if isinstance(line, RunOver)]
    numbers = [entry.number for entry in played.entries if isinstance(entry.event, RunEnded)]
    for place, line in enumerate(recorded, start=1):
        if numbers and line.number not in numbers:
            number = min(numbers, key=lambda each: abs(each - line.number))
            yield f"run {place} ended with event {line.number}, and now with event {number}"
