"""Exit codes."""

from __future__ import annotations

import pytest

from hermes_agent.cli.exits import MEANINGS, Exit
from hermes_agent.core import errors
from hermes_agent.core.events import Outcome, RunEnded


@pytest.mark.parametrize(
    ("outcome", "error", "code"),
    [
        (Outcome.ANSWERED, "", 0),
        (Outcome.FAILED, "", 1),
        (Outcome.FAILED, "DatabaseDamaged", 1),
        (Outcome.FAILED, "NoModel", 3),
        (Outcome.FAILED, "RateLimited", 5),
        (Outcome.FAILED, "NobodyKnowsThis", 1),
        (Outcome.LIMIT, "LimitReached", 6),
        (Outcome.STOPPED, "Stopped", 130),
    ],
)
def test_the_end_of_a_run_has_its_code(outcome: Outcome, error: str, code: int) -> None:
    assert Exit.of(RunEnded(outcome=outcome, text="", turns=1, error=error)) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [(errors.ConfigError, 4), (errors.HomeError, 4), (errors.Unreachable, 5), (errors.DiskFull, 1), (ValueError, 1)],
)
def test_an_error_has_its_code(error: type[BaseException], code: int) -> None:
    assert Exit.of_error(error) == code


def test_every_code_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Exit)
