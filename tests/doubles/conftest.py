"""The double of a homeserver, and matrix-nio as somebody who talks to it."""

import nio
import pytest

from tests.doubles.homeserver import matrix_platform
from tests.doubles.matrix import OWN


@pytest.fixture
async def homeserver():
    async with matrix_platform() as made:
        yield made


@pytest.fixture
async def client(homeserver):
    made = nio.AsyncClient(homeserver.url, OWN, device_id="DEVICE")
    made.access_token = "secret"
    yield made
    await made.close()
