"""Replays of random sessions: parallel calls, failures, retries, steering, stops."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.random_session import Shape, differences, record, replay


@pytest.mark.parametrize("seed", range(50))
async def test_a_replay_leaves_the_rows_of_the_recorded_run_times_included(seed: int, tmp_path: Path) -> None:
    await record(tmp_path, seed)

    await replay(tmp_path)

    assert differences(tmp_path) == []


@pytest.mark.parametrize("seed", [0, 1, 5, 11, 26, 55, 58, 99])
async def test_a_stop_or_an_interruption_at_any_moment_is_played_too(seed: int, tmp_path: Path) -> None:
    await record(tmp_path, seed, Shape(stops=True))

    await replay(tmp_path)

    assert differences(tmp_path) == []
