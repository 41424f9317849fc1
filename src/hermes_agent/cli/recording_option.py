"""The recording that a command line makes or plays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.cli.options import Invocation
from hermes_agent.core.errors import CassetteError
from hermes_agent.host.late import late

if TYPE_CHECKING:
    from hermes_agent.replay.recorder import Recorder
    from hermes_agent.replay.replayer import Player

TAPE = "hermes_agent.replay.cassettes:tape"


def recording_of(invocation: Invocation) -> Recorder | Player | None:
    """What the options mean; None where nothing is recorded or replayed. Raises `CassetteError`."""
    if not invocation.is_taped:
        return None
    tape: Recorder | Player | None = late(TAPE)(
        record=invocation.record,
        replay=invocation.replay,
        nearest=invocation.nearest,
        live_from=step_of(invocation.live_from),
    )
    return tape


def step_of(text: str) -> int | None:
    """The number of a step, from 1; None where none is given. Raises `CassetteError`."""
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise CassetteError(f"`{text}` is not a step: steps are numbered from 1, `hermes replay FILE` shows them.")
    return int(text)
