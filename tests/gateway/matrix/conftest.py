"""One homeserver for all tests of this folder."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.gateway.matrix.synapse import Synapse


@pytest.fixture(scope="session")
def server() -> "Iterator[Synapse]":
    synapse = pytest.importorskip("tests.gateway.matrix.synapse", reason="matrix-nio is not installed")
    with synapse.synapse() as running:
        yield running
