"""One homeserver for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.gateway.matrix.synapse import Synapse, synapse


@pytest.fixture(scope="session")
def server() -> Iterator[Synapse]:
    with synapse() as running:
        yield running
