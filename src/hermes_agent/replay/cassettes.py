"""Opens the cassette of a process: to record into it, or to replay it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.errors import CassetteError
from hermes_agent.core.ids import Ids, RandomIds
from hermes_agent.core.spending import Rules
from hermes_agent.replay.cassette.lines import Process
from hermes_agent.replay.cassette.playing import Player, Replay
from hermes_agent.replay.cassette.reading import read_cassette
from hermes_agent.replay.cassette.recording import Recorder
from hermes_agent.replay.cassette.redacting import Redact
from hermes_agent.replay.recorder import RecordingSeam
from hermes_agent.replay.replayer import LiveReplayer, Replayer
from hermes_agent.replay.seam import Seam

OpenedSeam = tuple[Seam, str, Ids | None, Rules | None]
"""The seam, where the rows are kept (empty: as configured), the ids of the store, and the limits."""


def tape(
    *, record: str = "", replay: str = "", nearest: bool = False, live_from: int | None = None
) -> Recorder | Player | None:
    """The tape that these options mean. Raises `CassetteError` for what cannot be read or does not go together."""
    if record and replay:
        raise CassetteError("A replay cannot be recorded: leave out --record or --replay.")
    if not replay and (nearest or live_from is not None):
        raise CassetteError("--nearest and --live-from say how to replay: --replay FILE is missing.")
    if nearest and live_from is not None:
        raise CassetteError("--nearest replays everything; --live-from goes on for real: choose one.")
    if record:
        return Recorder(Path(record), SystemClock())
    if not replay:
        return None
    path = Path(replay)
    return Player(read_cassette(path), Replay(path=path, nearest=nearest, live_from=live_from))


@contextmanager
def opened_seam(tape: Recorder | Player, redact: Redact, clock: Clock, process: Process) -> Iterator[OpenedSeam]:
    """Record or replay within the block. Raises `CassetteError`."""
    if isinstance(tape, Recorder):
        tape.start(redact, process)
        try:
            yield RecordingSeam(tape), "", tape.store_ids, None
        finally:
            tape.close()
    elif tape.how.is_live:
        yield LiveReplayer(tape, redact, clock, RandomIds()), "", None, None
    elif tape.how.database:
        yield Replayer(tape, redact), tape.how.database, tape.store_ids, tape.cassette.header.process.rules
    else:
        with tempfile.TemporaryDirectory(prefix="hermes-replay-") as folder:
            yield (
                Replayer(tape, redact),
                str(Path(folder) / "hermes.db"),
                tape.store_ids,
                tape.cassette.header.process.rules,
            )
