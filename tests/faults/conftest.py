"""The crash suite: seconds in CI, minutes with `pytest tests/faults --full`."""

import pytest

from tests.databases import cluster, database_url, open_another, open_postgres, store

__all__ = ["cluster", "database_url", "open_another", "open_postgres", "store"]


@pytest.fixture
def loop_seconds(full: bool) -> float:
    """How long a crash loop goes on."""
    return 120.0 if full else 3.0
