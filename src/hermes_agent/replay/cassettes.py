"""Opens a process's cassette for recording or replay, from the command-line options."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_agent.core.clock import Ids, SystemClock
from hermes_agent.core.errors import CassetteError
from hermes_agent.core.spending import Rules
from hermes_agent.replay.cassette import Redact, read_cassette
from hermes_agent.replay.lines import Process
from hermes_agent.replay.recorder import Recorder
from hermes_agent.replay.replayer import Player, Replay, player_of
from hermes_agent.replay.seam import Seam

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
