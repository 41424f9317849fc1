"""The throw-away server: found, started, crashed, removed."""

import subprocess
from pathlib import Path

import pytest

from tests.databases import NOT_INSTALLED
from tests.doubles.postgres import PostgresCluster, binaries


@pytest.fixture(scope="module")
def cluster():
    programs = binaries()
    if programs is None:
        pytest.skip(NOT_INSTALLED)
    cluster = PostgresCluster(programs)
    cluster.start()
    yield cluster
    cluster.remove()


def test_what_was_committed_outlives_a_crash(cluster: PostgresCluster):
    cluster.execute("CREATE TABLE kept (a int); INSERT INTO kept VALUES (7)")

    cluster.stop("immediate")
    cluster.start()

    assert cluster.execute("SELECT a FROM kept") == "7"


def test_each_url_is_an_empty_schema(cluster: PostgresCluster):
    first, second = cluster.fresh_url(), cluster.fresh_url()

    assert first != second
    assert first.startswith("postgresql://")


def test_a_failure_shows_what_the_program_said(cluster: PostgresCluster):
    with pytest.raises(subprocess.CalledProcessError) as failed:
        cluster.execute("SELECT nonsense")

    assert "nonsense" in "".join(failed.value.__notes__)


def test_a_server_that_was_removed_leaves_nothing():
    programs = binaries()
    if programs is None:
        pytest.skip(NOT_INSTALLED)
    cluster = PostgresCluster(programs, durable=True)
    folder = cluster._folder
    cluster.start()

    cluster.remove()

    assert not Path(folder).exists()
