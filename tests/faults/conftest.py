"""The crash suite: seconds in CI, minutes with `pytest tests/faults --full`."""

import pytest

from tests.databases import cluster, database_url, open_another, open_postgres, store

__all__ = ["cluster", "database_url", "open_another", "open_postgres", "store"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run each crash loop for minutes instead of seconds")


@pytest.fixture
def loop_seconds(request: pytest.FixtureRequest) -> float:
    """How long a crash loop goes on."""
    return 120.0 if request.config.getoption("--full", default=False) else 5.0
