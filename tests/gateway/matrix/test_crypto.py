import pytest

from hermes_agent.gateway.channel import NeverHere
from hermes_agent.gateway.matrix.crypto import Shut


async def test_without_encryption_nothing_is_read_and_nothing_goes_out_in_the_clear():
    shut = Shut()
    await shut.begin("@x:y", "D")
    await shut.synced({})

    shut.verify({}, shut.begin)
    assert await shut.read("!1", {}) is None
    assert "matrix-e2ee" in shut.excuse
    with pytest.raises(NeverHere, match="encrypt"):
        await shut.write("!1", "m.room.message", {})
    with pytest.raises(NeverHere, match="encrypt"):
        shut.lock(b"")
    with pytest.raises(NeverHere, match="encrypt"):
        shut.unlock(b"", {})
    await shut.close()
