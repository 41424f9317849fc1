"""The recording that a command line makes or plays."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.cli.options import Invocation
from hermes_agent.cli.recording_option import recording_of, step_of
from hermes_agent.core.errors import CassetteError
from hermes_agent.replay.recorder import Recorder


def test_nothing_is_recorded_without_being_asked_for() -> None:
    assert recording_of(Invocation()) is None


def test_the_options_become_a_tape(tmp_path: Path) -> None:
    assert isinstance(recording_of(Invocation(record=str(tmp_path / "x"))), Recorder)
    with pytest.raises(CassetteError, match="cannot be read"):
        recording_of(Invocation(replay=str(tmp_path / "none")))
    with pytest.raises(CassetteError, match="--replay FILE is missing"):
        recording_of(Invocation(nearest=True))


def test_a_step_is_a_number_from_one() -> None:
    assert (step_of(""), step_of("3")) == (None, 3)
    for text in ("0", "x", "-1"):
        with pytest.raises(CassetteError, match="not a step"):
            step_of(text)
